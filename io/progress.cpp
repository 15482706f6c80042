#include "io/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace zoo {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kLineSeconds = 5;

/// "0:07", "12:34", "3:25:00"
std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 1e9));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

/// The first `columns` characters of UTF-8 text, each counted as one column.
std::string_view cut(std::string_view text, size_t columns) {
  size_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (starts && characters++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

ProgressOutput ProgressOutput::standard_error() {
  ProgressOutput output;
  output.write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  output.columns = [] {
    if (::isatty(STDERR_FILENO) == 0) return 0;
    winsize size{};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? static_cast<int>(size.ws_col) : 80;
  };
  output.seconds = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  return output;
}

struct Progress::Impl {
  std::string title;
  int64_t total, first;
  ProgressOutput output;
  double started;
  int64_t step = 0;
  std::string status;
  std::optional<double> shown_at;  // when something was last shown
  bool pending = false;            // the last update is not on the screen yet
  bool line_open = false;          // the cursor is at the end of the redrawn line

  /// "450/1000  loss 1.92  1:05, 1:20 left"
  std::string text(double now) const {
    std::string result = total > 0 ? fmt::format("{}/{}", step, total) : fmt::format("{}", step);
    if (!status.empty()) result += "  " + status;
    const double spent = now - started;
    result += "  " + clock_text(spent);
    const int64_t done = step - first;
    if (total > step && done > 0) {
      const double left = spent / static_cast<double>(done) * static_cast<double>(total - step);
      result += fmt::format(", {} left", clock_text(left));
    }
    return result;
  }

  std::string bar() const {
    if (total <= 0) return "";
    constexpr int cells = 20;
    const double part = std::clamp(static_cast<double>(step) / static_cast<double>(total), 0.0, 1.0);
    const int full = static_cast<int>(part * cells);
    return fmt::format("{:3}% [{:#>{}}{:.>{}}] ", static_cast<int>(part * 100), "", full, "", cells - full);
  }

  void show() {
    const double now = output.seconds();
    const int columns = output.columns();
    if (columns > 0) {
      // One column is left free: a full line would make some terminals scroll.
      const std::string line = fmt::format("{} {}{}", title, bar(), text(now));
      output.write(fmt::format("\r{}\x1b[K", cut(line, static_cast<size_t>(std::max(columns - 1, 1)))));
      line_open = true;
    } else {
      output.write(fmt::format("{} {}\n", title, text(now)));
    }
    shown_at = now;
    pending = false;
  }

  bool due() const {
    if (!shown_at) return true;
    const double pause = output.columns() > 0 ? kRedrawSeconds : kLineSeconds;
    return output.seconds() - *shown_at >= pause || (total > 0 && step >= total);
  }
};

Progress::Progress(std::string_view title, int64_t total_steps, int64_t first_step, ProgressOutput output) {
  const double now = output.seconds();
  impl_ = std::make_unique<Impl>(Impl{
      std::string(title), total_steps, first_step, std::move(output), now, first_step, "", {}, false, false});
}

Progress::Progress(Progress&&) noexcept = default;

Progress::~Progress() {
  if (!impl_) return;
  if (impl_->pending) impl_->show();
  if (impl_->line_open) impl_->output.write("\n");
}

void Progress::update(int64_t step, std::string_view status) {
  impl_->step = step;
  impl_->status = status;
  impl_->pending = true;
  if (impl_->due()) impl_->show();
}

void Progress::message(std::string_view text) {
  if (impl_->line_open) impl_->output.write("\r\x1b[K");
  impl_->output.write(fmt::format("{}\n", text));
  if (std::exchange(impl_->line_open, false)) impl_->show();
}

}  // namespace zoo
