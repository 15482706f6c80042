#pragma once
// Checkpoints of nanoGPT (https://github.com/karpathy/nanoGPT): GPT-2 with linear maps as PyTorch stores
// them, the exact GELU, and biases or none.

#include <optional>

#include <nlohmann/json.hpp>

#include "interop/families/foreign_family.h"
#include "io/formats/pytorch_file.h"

namespace zoo {

/// The config.json of a checkpoint: its `model_args`, and which family it is. Nothing if it has none. Throws
/// CheckpointError.
std::optional<nlohmann::json> nanogpt_config(const PytorchFile& file);

/// The family with the model_type "nanogpt". transformers does not have it, so it is not exported to.
ForeignFamily nanogpt_foreign();

}  // namespace zoo
