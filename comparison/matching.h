#pragma once
// Models of equal size or equal cost: the widths of one are scaled until it agrees with another.

#include <cstdint>

#include "comparison/comparison_config.h"
#include "models/cost.h"

namespace zoo {

/// Parameters, or FLOPs per token of a forward pass over `length` tokens.
double matched_quantity(const ModelConfig& config, const ModelPurpose& purpose, MatchQuantity quantity,
                        int64_t length);

struct MatchedModel {
  ModelConfig config;
  double deviation = 0;  // (reached - target) / target
};

/// Scales `config` towards `target`: d_ff alone if half to twice its width is enough, else d_model in steps
/// that its heads can share, d_ff in proportion and then by itself. Depth, heads and everything else stay.
/// Throws ConfigError where no width comes within 2 %.
MatchedModel match_model(const ModelConfig& config, const ModelPurpose& purpose, MatchQuantity quantity,
                         double target, int64_t length);

}  // namespace zoo
