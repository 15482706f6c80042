#pragma once
// The numbers that a run reports: one JSON object per line in metrics.jsonl, and the same numbers as
// TensorBoard events.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// Named numbers at one step. Keys: train_loss, valid_loss, lr, grad_norm, tokens_per_second, …
using Metrics = std::map<std::string, double>;

/// Whether a metric says how much was measured: tokens, targets, images.
inline bool is_count(std::string_view metric) {
  return metric == "tokens" || metric == "targets" || metric == "images" || metric == "recordings" ||
         metric == "chains";
}

/// A metric for people: four decimals, or for a huge number its power of ten.
std::string metric_text(double value);

/// The last complete row of RUN/metrics.jsonl; null if there is none that can be read. The row after it may
/// be being written.
nlohmann::ordered_json last_metrics_row(const std::filesystem::path& run_dir);

/// Appends to RUN/metrics.jsonl, and writes a new file RUN/events.out.tfevents.*.
class MetricsLog {
 public:
  /// Continues the files in `run_dir`. Lines after `step` (from a run that was killed after its last
  /// checkpoint) are dropped, and TensorBoard is told to ignore their events. Throws DataError or
  /// CheckpointError if a file is there that cannot be read or must not be followed (open_file.h),
  /// SystemError.
  MetricsLog(const std::filesystem::path& run_dir, int64_t step);
  ~MetricsLog();
  /// Writes one line: step, tokens (seen so far), seconds (of training so far), then the metrics by name. A
  /// number that is not finite is null. The line is not buffered in this process. Throws SystemError.
  void write(int64_t step, int64_t tokens, double seconds, const Metrics& metrics);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace zoo
