#pragma once
// How modules make their tensors: with initial values; without, if values are loaded or copied into them
// next; or for their shapes alone, as those of a model that is larger than the memory.

#include <functional>

#include <torch/types.h>

namespace zoo {

enum class Construction {
  initialized,    // on the CPU; random values are drawn from the default generator
  uninitialized,  // on the CPU, with any values: no random number is drawn. Every tensor must be written next
  shapes_only,    // on the meta device: takes no memory, draws no random numbers, cannot compute
};

/// While it lives, modules that this thread constructs make their tensors in this way; otherwise initialized.
class ConstructionScope {
 public:
  explicit ConstructionScope(Construction construction);
  ~ConstructionScope();
  ConstructionScope(const ConstructionScope&) = delete;
  ConstructionScope& operator=(const ConstructionScope&) = delete;

 private:
  Construction former_;
};

/// The options with which a module makes its parameters and buffers: on the CPU, or on the meta device.
torch::TensorOptions parameter_options();

/// A tensor of these sizes for a parameter or a buffer. `draw` gives it its initial values, if it has any.
torch::Tensor drawn_tensor(at::IntArrayRef sizes, const std::function<void(torch::Tensor&)>& draw);

}  // namespace zoo
