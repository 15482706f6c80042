#pragma once
// LibTorch's own random numbers of a GPU. On the CPU layers take theirs from draw_seed() (base/random.h),
// so there is nothing to keep.

#include <torch/types.h>

namespace zoo {

/// Where the numbers of a device stand; undefined for the CPU.
torch::Tensor generator_state(c10::Device device);

/// While it lives, the numbers of a device are those from `state` on, if that is defined; then they go on
/// where they were.
class GeneratorScope {
 public:
  GeneratorScope(c10::Device device, const torch::Tensor& state);
  ~GeneratorScope();
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  c10::Device device_;
  torch::Tensor former_;
};

}  // namespace zoo
