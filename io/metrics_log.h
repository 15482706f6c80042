#pragma once
// What a run reports while it goes: one JSON object a line in metrics.jsonl, the same numbers as TensorBoard events,
// and a progress bar on a terminal or plain lines in a file.

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace zoo {

/// Named numbers of one moment. Keys: train_loss, valid_loss, lr, grad_norm, tokens_per_second, …
using Metrics = std::map<std::string, double>;

/// Appends to RUN/metrics.jsonl and RUN/events.out.tfevents.*.
class MetricsLog {
 public:
  /// Goes on with the files in `run_dir`; lines after `step` (from a run that was killed past its last checkpoint) are
  /// dropped. Throws SystemError.
  MetricsLog(const std::filesystem::path& run_dir, int64_t step);
  ~MetricsLog();
  /// One line: step, tokens (seen so far), seconds (of training so far), then the metrics. Flushed at once.
  void write(int64_t step, int64_t tokens, double seconds, const Metrics& metrics);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Progress of one long task on stderr. On a terminal one line is redrawn; elsewhere a plain line every few seconds.
class Progress {
 public:
  Progress(std::string_view title, int64_t total_steps, int64_t first_step = 0);
  ~Progress();
  /// `status` is short text such as "loss 1.92  12.3 k tokens/s".
  void update(int64_t step, std::string_view status);
  /// A line of its own, above the bar.
  void message(std::string_view text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zoo
