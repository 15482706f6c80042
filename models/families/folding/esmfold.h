#pragma once
// The keys of the family esmfold.

#include <cstdint>
#include <optional>
#include <vector>

#include "models/config/model_config.h"
#include "models/families/folding/folding_keys.h"

namespace zoo {

/// The keys of the family, beside `type: esmfold`. Those of `model` itself describe the language model.
struct EsmfoldConfig {
  int64_t passes = 4;
  int64_t n_blocks = 48, residue_width = 1024, pair_width = 128, residue_heads = 32, pair_heads = 4;
  int64_t most_distance = 32;
  double dropout = 0;
  std::optional<int64_t> chunk_size = {};
  bool embed_residues = true;
  int64_t confidence_width = 128;
  StructureModuleConfig structure = {};
};
void describe(ConfigVisitor& v, EsmfoldConfig& c);

/// The token of ESM's vocabulary for each kind of residue.
const std::vector<int64_t>& esm_tokens_of_residues();

}  // namespace zoo
