#pragma once
// The numbers that a run reports: one JSON object a line in metrics.jsonl, and the same as TensorBoard
// events.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace zoo {

/// Named numbers of one moment. Keys: train_loss, valid_loss, lr, grad_norm, tokens_per_second, …
using Metrics = std::map<std::string, double>;

/// Appends to RUN/metrics.jsonl and to a RUN/events.out.tfevents.* of its own.
class MetricsLog {
 public:
  /// Goes on with the files in `run_dir`; lines after `step` (from a run that was killed past its last
  /// checkpoint) are dropped, and TensorBoard is told to forget them. Throws SystemError.
  MetricsLog(const std::filesystem::path& run_dir, int64_t step);
  ~MetricsLog();
  /// One line: step, tokens (seen so far), seconds (of training so far), then the metrics by name; a number
  /// that is not finite is null. With the operating system when this returns. Throws SystemError.
  void write(int64_t step, int64_t tokens, double seconds, const Metrics& metrics);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zoo
