#pragma once
// Modules that are constructed for their shapes alone, as those of a model that is larger than the memory.

#include <torch/types.h>

namespace zoo {

/// While it lives, modules that this thread constructs make their tensors on the meta device: they have
/// shapes, take no memory, and draw no random numbers. They cannot compute.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;

 private:
  bool former_;
};

/// The options with which a module makes its parameters and buffers: on the CPU, or on the meta device.
torch::TensorOptions parameter_options();

}  // namespace zoo
