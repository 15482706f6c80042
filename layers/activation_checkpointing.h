#pragma once
// Activation checkpointing (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"): only the
// inputs of a part of a model are kept for the backward pass, which recomputes the part. This costs a third
// more computation and needs the memory of one part instead of all parts.

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// What the backward pass recomputes.
enum class ActivationCheckpointing { none, every_layer };
constexpr auto config_names(ActivationCheckpointing) {
  return std::to_array<std::string_view>({"none", "every_layer"});
}

/// A part of a model. Its output depends on `inputs`, on parameters, on random numbers (draw_seed(), or the
/// default generator of the inputs' device), and on nothing else that changes before the backward pass.
using Recomputable = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs)>;

/// Computes function(inputs) and keeps only the inputs. The second call sees the same random numbers and the
/// same autocast state as the first, and later random numbers are the same as after a plain call. Values and
/// gradients therefore equal the results of a plain call, on the CPU to the last bit.
///
/// `inputs` are all tensors through which a gradient may flow out of the function; the first one is on the
/// device where the function computes. `parameters` are the leaves that it uses. All must be defined. There
/// are no second derivatives: the backward pass throws c10::Error if it is to be differentiated itself.
torch::Tensor recomputed(Recomputable function, const std::vector<torch::Tensor>& inputs,
                         const std::vector<torch::Tensor>& parameters);

/// Whether this thread is inside the recomputation of a part and its inner backward pass. Gradients that
/// hooks see now are partial: they come from one part, and the outer backward pass has yet to add them up.
bool is_recomputing();

}  // namespace zoo
