#pragma once
// Activation checkpointing (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"): of a part of
// a model nothing but the inputs is kept for the backward pass, which computes the part again. A third more
// computation, for the memory of one part instead of that of all.

#include <functional>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// What the backward pass computes again.
enum class ActivationCheckpointing { none, every_layer };

/// A part of a model. Its output depends on `inputs`, on parameters and on random numbers (draw_seed(), or
/// the default generator of the inputs' device), and on nothing that changes until the backward pass.
using Recomputable = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs)>;

/// function(inputs), with only the inputs kept. The second call sees the same random numbers and the same
/// autocast as the first, and what is drawn afterwards is what would be drawn after a plain call; so values
/// and gradients are those of a plain call, on the CPU to the last bit.
///
/// `inputs` are all tensors that a gradient may flow through to reach the function, the first of them on the
/// device where it computes; `parameters` the leaves that it uses. Neither may be undefined. There are no
/// second derivatives: the backward pass throws c10::Error if it is to be differentiated itself.
torch::Tensor recomputed(Recomputable function, const std::vector<torch::Tensor>& inputs,
                         const std::vector<torch::Tensor>& parameters);

/// Whether this thread is computing again, and back, within a backward pass: gradients that hooks see now are
/// those of one function, which the pass itself is still to add up.
bool is_recomputing();

}  // namespace zoo
