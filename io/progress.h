#pragma once
// The progress of a long task.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace zoo {

/// Where progress is shown. Tests replace it.
struct ProgressOutput {
  std::function<void(std::string_view)> write;  // shows the bytes unchanged and immediately
  std::function<int()> columns;                 // width of the terminal; 0: not a terminal
  std::function<double()> seconds;              // of a monotonic clock

  static ProgressOutput standard_error();
};

/// What a task counts.
struct ProgressCount {
  int64_t total = 0;  // 0: the end is not known
  std::string unit =
      "steps";        // such as "lines"; empty: the numbers mean nothing, and only their share is shown
  int64_t first = 0;  // done in an earlier run
};

/// The seconds after which a task ends even if not everything is done.
struct TimeLimit {
  double used = 0, total = 0;
};

/// Progress of one long task on stderr. On a terminal, one line with a bar and the remaining time is redrawn
/// at most ten times a second. Elsewhere, plain lines are written: the first, the last, and one every five
/// seconds.
class Progress {
 public:
  Progress(std::string_view title, ProgressCount count,
           ProgressOutput output = ProgressOutput::standard_error());
  /// Shows the last state and ends the line.
  ~Progress();
  Progress(Progress&&) noexcept;
  Progress& operator=(Progress&&) = delete;

  /// Reports that `done` units are done. `status` is short text such as "loss 1.92  12.3 k tokens/s". With a
  /// time limit, the shown rest is the shorter one of both.
  void update(int64_t done, std::string_view status, std::optional<TimeLimit> limit = std::nullopt);
  /// Removes the bar from a terminal until the next update, so that something else can be written there.
  void clear();
  /// Writes `text` on a line of its own, above the bar.
  void message(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// "7.3 s", "12 min 34 s", "3 h 25 min"
std::string duration_text(double seconds);

/// "612 bytes", "36.9 kB", "1.2 MB", "5.1 GB"
std::string bytes_text(int64_t bytes);

}  // namespace zoo
