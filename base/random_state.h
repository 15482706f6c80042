#pragma once
// The state of LibTorch's random generator on a GPU. On the CPU, layers use draw_seed() (base/random.h), so
// there is no state to keep.

#include <torch/types.h>

namespace zoo {

/// The state of the device's random generator; undefined for the CPU.
torch::Tensor random_state(c10::Device device);

/// While it lives, the device's generator continues from `state`, if that is defined. The destructor restores
/// the former state.
class RandomStateScope {
 public:
  RandomStateScope(c10::Device device, const torch::Tensor& state);
  ~RandomStateScope();
  RandomStateScope(const RandomStateScope&) = delete;
  RandomStateScope& operator=(const RandomStateScope&) = delete;

 private:
  c10::Device device_;
  torch::Tensor former_;
};

}  // namespace zoo
