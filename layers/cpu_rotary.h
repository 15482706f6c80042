#pragma once
// Rotary positions on the processor: one pass over queries or keys, and one over their gradient, where a
// composition of LibTorch's operations makes seven and ten.

#include <torch/types.h>

namespace zoo {

struct RotaryTable;

/// Whether turn_on_cpu() can: float32 on the processor, neighbours in the last dimension side by side.
bool can_turn_on_cpu(const torch::Tensor& x, const RotaryTable& table);

/// RotaryTable::apply() of x (B, H, T, Dh); the result lies in memory as x does.
torch::Tensor turn_on_cpu(const torch::Tensor& x, const RotaryTable& table);

}  // namespace zoo
