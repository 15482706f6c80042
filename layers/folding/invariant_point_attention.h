#pragma once
// Invariant point attention (Jumper et al. 2021, algorithm 22): attention of residues to each other that sees
// where they are, and does not change when all of them are moved together.

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/folding/rigid.h"
#include "layers/weights/linear.h"

namespace zoo {

struct InvariantPointAttentionOptions {
  InvariantPointAttentionOptions(int64_t residue_width, int64_t pair_width)
      : residue_width_(residue_width), pair_width_(pair_width) {}
  TORCH_ARG(int64_t, residue_width);  // Cs
  TORCH_ARG(int64_t, pair_width);     // Cz
  TORCH_ARG(int64_t, n_heads) = 12;   // H
  TORCH_ARG(int64_t, head_width) = 16;
  TORCH_ARG(int64_t, query_points) = 4;  // P, of queries and of keys
  TORCH_ARG(int64_t, value_points) = 8;
};

class InvariantPointAttentionImpl : public Cloneable<InvariantPointAttentionImpl> {
 public:
  explicit InvariantPointAttentionImpl(const InvariantPointAttentionOptions& options);
  /// residues: (B, L, Cs); pairs: (B, L, L, Cz); frames: (B, L); mask: (B, L) float, 0 or 1 → the update
  /// (B, L, Cs)
  torch::Tensor forward(const torch::Tensor& residues, const torch::Tensor& pairs, const Rigid& frames,
                        const torch::Tensor& mask);

  InvariantPointAttentionOptions options;
  Linear q{nullptr}, kv{nullptr};  // kv: keys and values of the first head come first
  Linear q_points{nullptr},
      kv_points{nullptr};  // all x coordinates, then y and z; the points of a head in a row
  Linear bias{nullptr}, out{nullptr};
  torch::Tensor head_weights;  // (H): γ before softplus

 private:
  /// (B, H, L, L): half the squared distances between the points of queries and keys, (B, L, H, P, 3), times
  /// the weights of the heads.
  torch::Tensor point_scores(const torch::Tensor& queries, const torch::Tensor& keys) const;
};
TORCH_MODULE(InvariantPointAttention);

}  // namespace zoo
