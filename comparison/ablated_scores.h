#pragma once
// The scores of a trained run without parts of its model.

#include <filesystem>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "comparison/planning/comparison_config.h"
#include "io/metrics_log.h"

namespace zoo {

struct AblatedScores {
  Metrics scores;
  std::vector<std::string> parts;  // that were replaced: AblatedPart::name()
};

/// What scores_of() says of a run with parts of its model replaced (StandingAblation). `kept_at`: the file
/// that keeps it, which counts as long as weights, configuration, device and ablation are the same. Throws
/// the errors of Run::open(), and UsageError for a part that the model lacks or heads that cannot be found.
AblatedScores ablated_scores(const std::filesystem::path& run_dir, const AblationConfig& ablation,
                             const std::filesystem::path& kept_at, c10::Device device);

}  // namespace zoo
