#pragma once
// Flow matching between noise and backbones (Lipman et al. 2023; Wang et al. 2025, SimpleFold): on the way
// from noise ε at time 0 to a structure x at time 1 atoms are at t·x + (1 - t)·ε, with the velocity x - ε.

#include <cstdint>
#include <span>

#include <torch/types.h>

#include "base/random.h"
#include "models/folding_model.h"

namespace zoo {

/// Chains on their way, (B, L, 4, 3) each, in units of FlowModel::kUnit Å.
struct FlowPoints {
  torch::Tensor truth;   // turned at random
  torch::Tensor noise;   // normal; zeros in padding
  torch::Tensor places;  // truth and noise mixed; zeros where the truth is not known
  torch::Tensor times;   // (B)
};

/// Places of the chains of a batch (data/structures/backbone_batches.h) at random times: 98 % from the
/// logistic function of a normal number with mean 0.8 and deviation 1.7, 2 % uniform. What is drawn for a row
/// depends on its seed and its length alone.
FlowPoints flow_points(const Batch& batch, const RowSeed& seed);

/// Follows the flow from noise: (B, L, 4, 3) in Å, where row b begins with the noise of seeds[b]. A chain's
/// result does not depend on the chains beside it, up to rounding.
torch::Tensor follow_flow(FlowModel& model, const TokenBatch& chains, std::span<const uint64_t> seeds);

}  // namespace zoo
