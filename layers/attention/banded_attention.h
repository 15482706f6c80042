#pragma once
// Attention over visible pairs only, on any device.

#include <optional>

#include <torch/types.h>

#include "kernels/bands.h"

namespace zoo {

/// softmax(QKᵀ·scale)V over the visible pairs; zeros for queries that see nothing. q: (B, H, T, Dh), k: (B,
/// K, S, Dh), v: (B, K, S, Dv), H a multiple of K. Returns (B, H, T, Dv). `dropout`: probability of dropping
/// a weight. `softcap`: as in ScaledDotProductOptions. Time and memory grow with the number of visible pairs.
/// Uses cpu_attention() where it can.
torch::Tensor banded_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                               const VisiblePairs& visible, double scale, double dropout = 0,
                               std::optional<double> softcap = {});

/// The same by operations of LibTorch, for devices and types without a kernel of our own: the keys of each
/// block of queries are gathered, and blocks with equally many keys are one batched product.
torch::Tensor gathered_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                 const VisiblePairs& visible, double scale, double dropout = 0,
                                 std::optional<double> softcap = {});

}  // namespace zoo
