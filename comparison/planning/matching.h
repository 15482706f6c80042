#pragma once
// Scales the widths of one model until it has the size or the cost of another.

#include <cstdint>

#include "comparison/planning/comparison_config.h"
#include "models/families/model_cost.h"

namespace zoo {

/// Parameters, or FLOPs of a forward pass: per token of `length` tokens, or per image (unit_cost()).
double matched_quantity(const ModelConfig& config, const ModelPurpose& purpose, MatchQuantity quantity,
                        int64_t length);

struct MatchedModel {
  ModelConfig config;
  double deviation = 0;  // (reached - target) / target
};

/// Scales `config` towards `target`. Scales only d_ff if a factor between a half and two is enough. Otherwise
/// scales d_model, in steps that its heads can share, and d_ff in proportion, and then d_ff alone. Depth,
/// heads and everything else stay. Throws ConfigError where no width comes within 2 %.
MatchedModel match_model(const ModelConfig& config, const ModelPurpose& purpose, MatchQuantity quantity,
                         double target, int64_t length);

}  // namespace zoo
