#pragma once
// The keys of the family fold_flow.

#include <cstdint>
#include <optional>

#include "models/config/model_config.h"
#include "models/families/folding/residue_language.h"

namespace zoo {

/// The keys of the family, beside `type: fold_flow`. Those of `model` itself describe its layers.
struct FoldFlowConfig {
  int64_t steps = 50;                                      // Euler steps of a prediction
  int64_t time_width = 256;                                // sines and cosines of the time
  std::optional<LanguageModelConfig> language_model = {};  // default: letters alone
};
void describe(ConfigVisitor& v, FoldFlowConfig& c);

}  // namespace zoo
