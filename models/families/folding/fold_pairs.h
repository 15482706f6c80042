#pragma once
// The keys of the family fold_pairs.

#include <cstdint>
#include <optional>

#include "models/config/model_config.h"
#include "models/families/folding/folding_keys.h"
#include "models/families/folding/residue_language.h"

namespace zoo {

/// The keys of the family, beside `type: fold_pairs`. The family uses no other keys
/// of `model` than those of the initial weights.
struct FoldPairsConfig {
  int64_t passes = 1;  // in training a number from 1 to this one is drawn
  int64_t n_blocks = 2, residue_width = 64, pair_width = 32, residue_heads = 4, pair_heads = 2;
  int64_t most_distance = 32;
  double dropout = 0;
  std::optional<int64_t> chunk_size = {};
  StructureModuleConfig structure = {.residue_width = 64,
                                     .pair_width = 32,
                                     .n_blocks = 4,
                                     .n_heads = 4,
                                     .head_width = 16,
                                     .angle_width = 32,
                                     .angle_blocks = 1,
                                     .dropout = 0};
  std::optional<LanguageModelConfig> language_model = {};  // default: letters alone
};
void describe(ConfigVisitor& v, FoldPairsConfig& c);

}  // namespace zoo
