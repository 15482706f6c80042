#pragma once
// The tuned lens (Belrose et al. 2023). An affine map for each depth brings the vectors of the residual
// stream to what the final norm and the head read. The maps are trained for one model (lens_training.h) and
// kept in a file.

#include <filesystem>
#include <vector>

#include <torch/types.h>

#include "models/model.h"

namespace zoo {

/// The map of one depth: x + A x + b.
struct LensMap {
  torch::Tensor weight;  // A, (D, D)
  torch::Tensor bias;    // b, (D)

  /// (…, D) → (…, D)
  torch::Tensor operator()(const torch::Tensor& x) const;
};

/// The maps of depths 0 … N-1 of a model with N layers. Depth N is the model itself and has none.
using TrainedLens = std::vector<LensMap>;

/// Zeros, with which the lens has the bits of the lens without maps. On the model's device. Throws UsageError
/// for a model without layers that have names.
TrainedLens untrained_lens(const Model& model);

/// Writes a safetensors file with depths.I.weight, depths.I.bias and a hash of the model's weights. Throws
/// SystemError.
void save_lens(const std::filesystem::path& path, const TrainedLens& lens, const Model& model);
/// Whether a file is a trained lens, of whatever model.
bool is_lens(const std::filesystem::path& path);
/// Reads it to the model's device. Throws CheckpointError: missing, damaged, not a trained lens, or one of a
/// model of another shape or with other weights.
TrainedLens load_lens(const std::filesystem::path& path, const Model& model);

}  // namespace zoo
