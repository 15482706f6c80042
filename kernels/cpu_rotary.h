#pragma once
// Rotary position embedding on the CPU: one pass over queries or keys, and one over their gradient. A
// composition of LibTorch's operations makes seven and ten passes.

#include <array>
#include <string_view>

#include <torch/types.h>

namespace zoo {

/// Which elements form a pair: interleaved (2i, 2i+1) as in the paper and GPT-J, or half (i, i + R/2) as in
/// GPT-NeoX and transformers' Llama.
enum class RotaryLayout { interleaved, half };
constexpr auto config_names(RotaryLayout) { return std::to_array<std::string_view>({"interleaved", "half"}); }

/// Cosines and sines of the angles of one call: (T, R/2), or (B, 1, T, R/2) if the sequences differ.
struct RotaryAngles {
  torch::Tensor cos, sin;
  RotaryLayout layout = RotaryLayout::half;
};

/// Whether cpu_rotary() takes these tensors: float32 on the CPU, the last dimension contiguous.
bool has_cpu_rotary(const torch::Tensor& x, const RotaryAngles& angles);

/// Rotates the first R elements of each head of x (B, H, T, Dh). The result has the memory layout of x.
torch::Tensor cpu_rotary(const torch::Tensor& x, const RotaryAngles& angles);

}  // namespace zoo
