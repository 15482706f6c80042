#pragma once
// The weights of a run with adapters (training.lora). RUN/base.safetensors has the weights that are not
// trained; it is written once. Each checkpoint, and the run for its best weights, has an adapter.safetensors
// with the trained weights and the hash of their base.

#include <filesystem>
#include <string>

#include <torch/nn/module.h>

#include "io/safetensors.h"

namespace zoo {

inline constexpr const char* kBaseFile = "base.safetensors";

/// The parameters of a model with adapters that are not trained.
TensorMap base_tensors(const torch::nn::Module& model);
/// The tensors in the files of weights of a model: all, or with adapters those that are not in its base.
TensorMap stored_tensors(const torch::nn::Module& model);
/// The name of these files: "model.safetensors", or "adapter.safetensors" with adapters.
std::string weights_name(const torch::nn::Module& model);

/// Hex digest of the names, shapes and values of tensors.
std::string hash_of_tensors(const TensorMap& tensors);

/// Writes RUN/base.safetensors. Returns its hash. Throws SystemError.
std::string save_base(const std::filesystem::path& run_dir, const torch::nn::Module& model);

/// Whether a base is only read, or also compared with its hash, which takes a second for a gigabyte.
enum class BaseCheck { none, hash };
/// Reads RUN/base.safetensors into `model`. Returns its hash. Throws CheckpointError.
std::string load_base(const std::filesystem::path& run_dir, const torch::nn::Module& model, BaseCheck check);

/// The hash that RUN/base.safetensors says it has; empty if it says none.
std::string hash_of_base(const SafetensorsFile& base);

/// The metadata of weights that belong to the base with this hash; none if `base` is empty.
StringMap belongs_to(const std::string& base);
/// Throws CheckpointError if the file of weights belongs to another base than the one with this hash.
void check_belongs_to(const std::filesystem::path& weights, const std::string& base);

}  // namespace zoo
