#pragma once
// The progress of a long task.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace zoo {

/// Where progress is shown. Tests replace it.
struct ProgressOutput {
  std::function<void(std::string_view)> write;  // shows the bytes unchanged and immediately
  std::function<int()> columns;                 // width of the terminal; 0: not a terminal
  std::function<double()> seconds;              // of a monotonic clock

  static ProgressOutput standard_error();
};

/// Progress of one long task on stderr. On a terminal, one line with a bar and the remaining time is redrawn
/// at most ten times a second. Elsewhere, plain lines are written: the first, the last, and one every five
/// seconds.
class Progress {
 public:
  /// `total_steps` is 0 if the end is not known. `first_step` is the number of steps done in an earlier run.
  Progress(std::string_view title, int64_t total_steps, int64_t first_step = 0,
           ProgressOutput output = ProgressOutput::standard_error());
  /// Shows the last state and ends the line.
  ~Progress();
  Progress(Progress&&) noexcept;
  Progress& operator=(Progress&&) = delete;

  /// Reports that `step` steps are done. `status` is short text such as "loss 1.92  12.3 k tokens/s".
  void update(int64_t step, std::string_view status);
  /// Writes `text` on a line of its own, above the bar.
  void message(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zoo
