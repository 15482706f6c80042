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
#include "io/text_width.h"

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
  std::string status = {};
  std::optional<TimeLimit> limit = {};
  std::optional<double> shown_at = {};  // when something was last shown
  int64_t shown_done = 0;               // what it said
  std::string shown_status = {};
  struct Beginning {
    int64_t done;
    double seconds;  // since the start
  };
  std::optional<Beginning> beginning = {};  // the first update that says more than count.first
  bool pending = false;                     // the last update is not on the screen yet
  bool line_open = false;                   // the cursor is at the end of the redrawn line

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
    // The work before the first unit, such as reading data, is done only once.
    const bool knows_rate = beginning && done > beginning->done;
    const auto from = knows_rate ? *beginning : Beginning{.done = count.first, .seconds = 0};
    if (count.total > done && done > from.done)
      result = (spent - from.seconds) / static_cast<double>(done - from.done) *
               static_cast<double>(count.total - done);
    if (!limit || at_end()) return result;
    const double until_limit = limit->total - limit->used;
    if (until_limit <= 0) return std::nullopt;
    return std::min(result.value_or(until_limit), until_limit);
  }

  enum class Spent { shown, left_out };

  /// "450/1000 steps  loss 1.92  1 min 5 s, 1 min 20 s left", without the first `n_cut` parts of the status
  /// from its end. The time that is spent may be left out if the time left is known.
  std::string text(double now, size_t n_cut = 0, Spent spent_time = Spent::shown) const {
    std::string result;
    if (!count.unit.empty()) {
      result = count.total > 0 ? fmt::format("{}/{} {}", done, count.total, count.unit)
                               : fmt::format("{} {}", done, count.unit);
    }
    const auto add = [&](std::string_view part) {
      if (!part.empty()) result += fmt::format("{}{}", result.empty() ? "" : "  ", part);
    };
    add(status_without(n_cut));
    const double spent = now - started;
    const auto rest = left(spent);
    const auto rest_text = rest ? fmt::format("{} left", duration_text(*rest)) : std::string();
    if (rest && spent_time == Spent::left_out) {
      add(rest_text);
    } else {
      add(duration_text(spent) + (rest ? ", " : "") + rest_text);
    }
    return result;
  }

  /// The status without its last `n_cut` parts, which two blanks separate.
  std::string_view status_without(size_t n_cut) const {
    std::string_view rest = status;
    for (; n_cut > 0 && !rest.empty(); --n_cut) {
      const size_t at = rest.rfind("  ");
      rest = rest.substr(0, at == rest.npos ? 0 : at);
    }
    return rest;
  }

  std::string percent() const { return fmt::format("{:3}%", static_cast<int>(*share() * 100)); }

  std::string bar(int cells) const {
    if (!share()) return "";
    if (cells == 0) return percent() + " ";
    const int full = static_cast<int>(*share() * cells);
    return fmt::format("{} [{:#>{}}{:.>{}}] ", percent(), "", full, "", cells - full);
  }

  /// The line for a terminal. What does not fit is left out, the least important first: the bar, the end of
  /// the status, the time that is spent, the beginning of a long title. The time left stays.
  std::string line(double now, size_t columns) const {
    constexpr size_t most_parts = 8;
    const auto fits = [&](const std::string& text) { return width_of(text) <= columns; };
    const auto shown = [&](const std::string& name, int cells, size_t n_cut, Spent spent) {
      return excerpt(fmt::format("{} {}{}", name, bar(cells), text(now, n_cut, spent)), std::string::npos);
    };
    std::string result;
    for (const int cells : {20, 10, 0}) {
      result = shown(title, cells, 0, Spent::shown);
      if (fits(result)) return result;
    }
    for (size_t n_cut = 1; n_cut <= most_parts; ++n_cut) {
      result = shown(title, 0, n_cut, Spent::shown);
      if (fits(result)) return result;
    }
    result = shown(title, 0, most_parts, Spent::left_out);
    if (fits(result)) return result;
    const size_t rest = width_of(result) - width_of(title);
    const auto name = std::string(cut(title, columns > rest + 1 ? columns - rest - 1 : 0));
    return std::string(cut(shown(name + "…", 0, most_parts, Spent::left_out), columns));
  }

  void show() {
    const double now = output.seconds();
    const int columns = output.columns();
    if (columns > 0) {
      // One column is left free: a full line would make some terminals scroll.
      output.write(fmt::format("\r{}\x1b[K", line(now, static_cast<size_t>(std::max(columns - 1, 1)))));
      line_open = true;
    } else {
      const bool share_alone = count.unit.empty() && share();
      output.write(fmt::format("{} {}{}\n", title, share_alone ? percent() + "  " : "", text(now)));
    }
    shown_at = now;
    shown_done = done;
    shown_status = status;
    pending = false;
  }

  /// Whether a line would say again what the last one says.
  bool is_shown() const { return shown_at && shown_done == done && shown_status == status; }

  bool due() const {
    if (!shown_at) return true;
    const bool on_terminal = output.columns() > 0;
    if (!on_terminal && is_shown()) return false;
    const double pause = on_terminal ? kRedrawSeconds : kLineSeconds;
    return output.seconds() - *shown_at >= pause || at_end();
  }
};

Progress::Progress(std::string_view title, ProgressCount count, ProgressOutput output) {
  const double now = output.seconds();
  const int64_t first = count.first;
  impl_ = std::make_unique<Impl>(Impl{std::string(title), std::move(count), std::move(output), now, first});
}

Progress::Progress(Progress&&) noexcept = default;

Progress::~Progress() {
  if (!impl_) return;
  if (impl_->pending && !(impl_->output.columns() == 0 && impl_->is_shown())) impl_->show();
  if (impl_->line_open) impl_->output.write("\n");
}

void Progress::update(int64_t done, std::string_view status, std::optional<TimeLimit> limit) {
  impl_->done = done;
  if (!impl_->beginning && done > impl_->count.first)
    impl_->beginning = {.done = done, .seconds = impl_->output.seconds() - impl_->started};
  impl_->status = status;
  impl_->limit = limit;
  impl_->pending = true;
  if (impl_->due()) impl_->show();
}

void Progress::clear() {
  if (!std::exchange(impl_->line_open, false)) return;
  impl_->output.write("\r\x1b[K");
  impl_->shown_at.reset();  // the next update is shown at once
}

void Progress::message(std::string_view text) {
  const bool on_terminal = impl_->output.columns() > 0;
  const bool was_open = std::exchange(impl_->line_open, false);
  if (was_open) impl_->output.write("\r\x1b[K");
  impl_->output.write((on_terminal ? printable(text) : std::string(text)) + "\n");
  if (was_open) impl_->show();
}

std::string bytes_text(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return bytes < 1000            ? fmt::format("{} bytes", bytes)
         : bytes < 1'000'000     ? fmt::format("{:.1f} kB", size / 1e3)
         : bytes < 1'000'000'000 ? fmt::format("{:.1f} MB", size / 1e6)
                                 : fmt::format("{:.1f} GB", size / 1e9);
}

std::string duration_text(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", std::max(seconds, 0.0));
  const auto whole = static_cast<int64_t>(std::min(seconds + 0.5, 1e9));
  return whole < 3600 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                      : fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace zoo
