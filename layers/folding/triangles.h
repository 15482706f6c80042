#pragma once
// Updates of pair representations z (B, L, L, C), in which every pair of residues sees the pairs that form a
// triangle with it (Jumper et al. 2021, supplement 1.6.5 and 1.6.6).

#include <optional>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/linear.h"
#include "layers/weights/norm.h"

namespace zoo {

/// Which edges of a triangle an update reads: those that start at the nodes i and j of a pair, or end there.
enum class TriangleEdges {
  outgoing,  // algorithm 11: z_ik and z_jk
  incoming,  // algorithm 12: z_ki and z_kj
};

class TriangleMultiplicationImpl : public Cloneable<TriangleMultiplicationImpl> {
 public:
  /// width: C.
  TriangleMultiplicationImpl(int64_t width, TriangleEdges edges);
  /// pairs: (B, L, L, C); mask: (B, L, L) float, 0 or 1 → the update (B, L, L, C)
  torch::Tensor forward(const torch::Tensor& pairs, const torch::Tensor& mask);
  auto arguments() const { return std::tuple(out->n_inputs(), edges_); }

  Norm norm_in{nullptr}, norm_out{nullptr};
  Linear left{nullptr}, left_gate{nullptr}, right{nullptr}, right_gate{nullptr}, gate{nullptr}, out{nullptr};

 private:
  TriangleEdges edges_;
};
TORCH_MODULE(TriangleMultiplication);

/// The node at which the attending edges of a pair meet.
enum class TriangleNode {
  starting,  // algorithm 13
  ending,    // algorithm 14
};

class TriangleAttentionImpl : public Cloneable<TriangleAttentionImpl> {
 public:
  /// width: C; n_heads heads of C / n_heads. Throws c10::Error if it is not a multiple.
  TriangleAttentionImpl(int64_t width, int64_t n_heads, TriangleNode node);
  /// As TriangleMultiplication. rows: as many rows of pairs are computed at a time, which takes less memory
  /// and gives the same; default: all.
  torch::Tensor forward(const torch::Tensor& pairs, const torch::Tensor& mask,
                        std::optional<int64_t> rows = std::nullopt);
  auto arguments() const { return std::tuple(out->n_inputs(), n_heads_, node_); }

  Norm norm{nullptr};
  Linear bias{nullptr}, q{nullptr}, k{nullptr}, v{nullptr}, gate{nullptr}, out{nullptr};

 private:
  torch::Tensor attend(const torch::Tensor& pairs, const torch::Tensor& mask_bias,
                       const torch::Tensor& pair_bias);

  int64_t n_heads_;
  TriangleNode node_;
};
TORCH_MODULE(TriangleAttention);

}  // namespace zoo
