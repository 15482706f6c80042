#pragma once
// The keys of the family fold_flow.

#include <cstdint>

#include "models/config/model_config.h"

namespace zoo {

/// The keys of the family, beside `type: fold_flow`. Those of `model` itself describe its layers.
struct FoldFlowConfig {
  int64_t steps = 50;        // Euler steps of a prediction
  int64_t time_width = 256;  // sines and cosines of the time
};
void describe(ConfigVisitor& v, FoldFlowConfig& c);

}  // namespace zoo
