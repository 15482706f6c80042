#pragma once
// Weights that are numbers: a training that diverges leaves infinities and NaN, and everything that is
// computed from them looks like a result.

#include <filesystem>
#include <optional>
#include <string>

#include "io/safetensors.h"

namespace zoo {

/// The name of the first tensor that has an element that is infinite or NaN, if any has. Waits once for the
/// device.
std::optional<std::string> find_not_finite(const TensorMap& tensors);

/// Throws a CheckpointError that names `path` and the tensor, if find_not_finite() finds one of the tensors
/// that were read from `path`.
void check_finite(const std::filesystem::path& path, const TensorMap& tensors);

}  // namespace zoo
