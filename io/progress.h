#pragma once
// How far a long task has come.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace zoo {

/// Where progress is shown. Tests replace it.
struct ProgressOutput {
  std::function<void(std::string_view)> write;  // bytes as they are, at once
  std::function<int()> columns;                 // width of the terminal; 0: not a terminal
  std::function<double()> seconds;              // of a clock that never goes back

  static ProgressOutput standard_error();
};

/// Progress of one long task on stderr. On a terminal one line is redrawn, at most ten times a second, with a
/// bar and the time that is left; elsewhere there are plain lines: the first, the last, and one every five
/// seconds.
class Progress {
 public:
  /// With `total_steps` 0 the end is not known. `first_step`: how many were done before, in an earlier run.
  Progress(std::string_view title, int64_t total_steps, int64_t first_step = 0,
           ProgressOutput output = ProgressOutput::standard_error());
  /// Shows the last state and ends the line.
  ~Progress();
  Progress(Progress&&) noexcept;
  Progress& operator=(Progress&&) = delete;

  /// `step` steps are done. `status` is short text such as "loss 1.92  12.3 k tokens/s".
  void update(int64_t step, std::string_view status);
  /// A line of its own, above the bar.
  void message(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zoo
