#pragma once
// Rotary positions on the processor: one pass over queries or keys, and one over their gradient, where a
// composition of LibTorch's operations makes seven and ten.

#include <torch/types.h>

namespace zoo {

/// Which elements form a pair: (2i, 2i+1) (the paper, GPT-J) or (i, i + R/2) (GPT-NeoX, Llama in
/// transformers).
enum class RotaryLayout { interleaved, half };

/// Cosines and sines of the angles of one call: (T, R/2), or (B, 1, T, R/2) where the rows differ.
struct RotaryAngles {
  torch::Tensor cos, sin;
  RotaryLayout layout = RotaryLayout::half;
};

/// Whether cpu_rotary() takes these: float32 on the processor, neighbours in the last dimension side by side.
bool has_cpu_rotary(const torch::Tensor& x, const RotaryAngles& angles);

/// x (B, H, T, Dh) with its first R elements turned; the result lies in memory as x does.
torch::Tensor cpu_rotary(const torch::Tensor& x, const RotaryAngles& angles);

}  // namespace zoo
