#pragma once
// Attention of one new token a row on a GPU by a kernel of our own (gpu/decoding_attention.cu), for decoding:
// norms of queries and keys, rotary positions, the writing of the cache and attention in one pass, for rows
// of any lengths.

#include <cstdint>
#include <optional>

#include <torch/types.h>

#include "kernels/cpu_rotary.h"
#include "kernels/gpu/decoding_attention_call.h"
#include "kernels/gpu/gpu_program.h"

namespace zoo {

/// One step of attention over a cache.
struct DecodingAttentionPlan {
  int64_t n_heads = 1;         // H
  int64_t n_kv_heads = 1;      // K
  torch::Tensor keys, values;  // (B, K, S, Dh) of one type, views of the cache with room for the new tokens
  torch::Tensor positions =
      {};  // (B) int64: the columns of the new tokens, below S; undefined: all are at `position`
  int64_t position = 0;
  /// cos and sin (1, R/2), or (B, 1, 1, R/2) float; undefined: nothing is rotated.
  RotaryAngles angles = {};
  torch::Tensor query_gain = {}, key_gain = {};  // (Dh) float: RMS norms of each head; undefined: none
  double gain_offset = 0, norm_eps = 0;
  double scale = 1;
  std::optional<double> softcap = {};
  torch::Tensor sinks = {};  // (H) float, or undefined
};

/// Whether the kernel can read such a cache, and is there on its device.
bool has_gpu_decoding_attention(const DecodingAttentionPlan& plan);

/// heads: (B, 1, (H + 2K)·Dh) of the cache's type: queries, keys and values, which enter the cache. Each row
/// attends to the columns up to its new one. Returns (B, 1, H·Dh); a row of the result depends on this row
/// only. Needs has_gpu_decoding_attention().
torch::Tensor gpu_decoding_attention(const torch::Tensor& heads, const DecodingAttentionPlan& plan);

/// The same by `program`.
torch::Tensor decoding_attention_by(const KernelProgram& program, const torch::Tensor& heads,
                                    const DecodingAttentionPlan& plan);

}  // namespace zoo
