#pragma once
// The part of ESM's family that folds: what EsmForProteinFolding has around its language model.

#include <nlohmann/json_fwd.hpp>

#include "interop/families/foreign_config.h"
#include "interop/families/tensor_rules.h"
#include "models/config/model_config.h"

namespace zoo {

/// Sets to.architecture from `esmfold_config` and `vocab_list`.
void read_esmfold(ForeignConfig& from, ModelConfig& to);
void write_esmfold(const ModelConfig& from, nlohmann::json& to);
/// Adds what is around the language model, of a model whose architecture is esmfold.
void add_esmfold_rules(const ModelConfig& model, TensorRules& rules);

}  // namespace zoo
