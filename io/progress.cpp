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

#include "base/text.h"

namespace zoo {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kLineSeconds = 5;

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
  ProgressCount count;
  ProgressOutput output;
  double started;
  int64_t done = 0;
  std::string status;
  std::optional<TimeLimit> limit;
  std::optional<double> shown_at;  // when something was last shown
  bool pending = false;            // the last update is not on the screen yet
  bool line_open = false;          // the cursor is at the end of the redrawn line

  bool at_end() const { return count.total > 0 && done >= count.total; }

  /// How much is done, 0 … 1, if the end is known.
  std::optional<double> share() const {
    if (count.total <= 0) return std::nullopt;
    double result = static_cast<double>(done) / static_cast<double>(count.total);
    if (limit && limit->total > 0) result = std::max(result, limit->used / limit->total);
    return std::clamp(result, 0.0, 1.0);
  }

  /// Seconds until the end, if they can be known.
  std::optional<double> left(double spent) const {
    std::optional<double> result;
    const int64_t since_start = done - count.first;
    if (count.total > done && since_start > 0)
      result = spent / static_cast<double>(since_start) * static_cast<double>(count.total - done);
    if (!limit || at_end()) return result;
    const double until_limit = limit->total - limit->used;
    if (until_limit <= 0) return std::nullopt;
    return std::min(result.value_or(until_limit), until_limit);
  }

  /// "450/1000 steps  loss 1.92  1 min 5 s, 1 min 20 s left"
  std::string text(double now) const {
    std::string result;
    if (!count.unit.empty()) {
      result = count.total > 0 ? fmt::format("{}/{} {}", done, count.total, count.unit)
                               : fmt::format("{} {}", done, count.unit);
    }
    const auto add = [&](const std::string& part) { result += (result.empty() ? "" : "  ") + part; };
    if (!status.empty()) add(status);
    const double spent = now - started;
    add(duration_text(spent));
    if (const auto rest = left(spent)) result += fmt::format(", {} left", duration_text(*rest));
    return result;
  }

  std::string percent() const { return fmt::format("{:3}%", static_cast<int>(*share() * 100)); }

  std::string bar() const {
    if (!share()) return "";
    constexpr int cells = 20;
    const int full = static_cast<int>(*share() * cells);
    return fmt::format("{} [{:#>{}}{:.>{}}] ", percent(), "", full, "", cells - full);
  }

  void show() {
    const double now = output.seconds();
    const int columns = output.columns();
    if (columns > 0) {
      // One column is left free: a full line would make some terminals scroll.
      const std::string line = excerpt(fmt::format("{} {}{}", title, bar(), text(now)), std::string::npos);
      output.write(fmt::format("\r{}\x1b[K", cut(line, static_cast<size_t>(std::max(columns - 1, 1)))));
      line_open = true;
    } else {
      const bool share_alone = count.unit.empty() && share();
      output.write(fmt::format("{} {}{}\n", title, share_alone ? percent() + "  " : "", text(now)));
    }
    shown_at = now;
    pending = false;
  }

  bool due() const {
    if (!shown_at) return true;
    const double pause = output.columns() > 0 ? kRedrawSeconds : kLineSeconds;
    return output.seconds() - *shown_at >= pause || at_end();
  }
};

Progress::Progress(std::string_view title, ProgressCount count, ProgressOutput output) {
  const double now = output.seconds();
  const int64_t first = count.first;
  impl_ = std::make_unique<Impl>(
      Impl{std::string(title), std::move(count), std::move(output), now, first, "", {}, {}, false, false});
}

Progress::Progress(Progress&&) noexcept = default;

Progress::~Progress() {
  if (!impl_) return;
  if (impl_->pending) impl_->show();
  if (impl_->line_open) impl_->output.write("\n");
}

void Progress::update(int64_t done, std::string_view status, std::optional<TimeLimit> limit) {
  impl_->done = done;
  impl_->status = status;
  impl_->limit = limit;
  impl_->pending = true;
  if (impl_->due()) impl_->show();
}

void Progress::message(std::string_view text) {
  const bool on_terminal = impl_->output.columns() > 0;
  if (impl_->line_open) impl_->output.write("\r\x1b[K");
  impl_->output.write((on_terminal ? printable(text) : std::string(text)) + "\n");
  if (std::exchange(impl_->line_open, false)) impl_->show();
}

std::string duration_text(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", std::max(seconds, 0.0));
  const auto whole = static_cast<int64_t>(std::min(seconds + 0.5, 1e9));
  return whole < 3600 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                      : fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace zoo
