#pragma once
// Layers between residues s (B, L, Cs) and pairs z (B, L, L, Cz) of a folding trunk, as in ESMFold (Lin et
// al. 2023, supplement), and those of AlphaFold 2 that they were made from (Jumper et al. 2021).

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/linear.h"
#include "layers/weights/norm.h"

namespace zoo {

/// Vectors for the distance of two residues along the chain: algorithm 4, in which a table takes the place of
/// a linear map of one-hot vectors.
class RelativePositionsImpl : public Cloneable<RelativePositionsImpl>, public WeightOwner {
 public:
  /// Distances beyond `most` count as `most`. width: Cz.
  RelativePositionsImpl(int64_t most, int64_t width);
  /// index: (B, L) int64, the places in the chain; mask: (B, L, L) float, 0 or 1 → (B, L, L, Cz)
  torch::Tensor forward(const torch::Tensor& index, const torch::Tensor& mask);
  void visit_weights(const WeightVisitor& visit) const override;
  auto arguments() const { return std::tuple(most_, table->weight.size(1)); }

  torch::nn::Embedding table{nullptr};  // (2·most + 2, Cz); row 0 is for hidden pairs

 private:
  int64_t most_;
};
TORCH_MODULE(RelativePositions);

/// From residues to pairs: the products and differences of two vectors. Takes the place of the outer product
/// mean (algorithm 10), which is over the sequences of an alignment.
class ResiduesToPairsImpl : public Cloneable<ResiduesToPairsImpl> {
 public:
  /// residue_width: Cs; pair_width: Cz, even.
  ResiduesToPairsImpl(int64_t residue_width, int64_t pair_width);
  /// (B, L, Cs) → (B, L, L, Cz)
  torch::Tensor forward(const torch::Tensor& residues);
  auto arguments() const { return std::tuple(in->n_inputs(), out->n_inputs()); }

  Norm norm{nullptr};
  Linear in{nullptr}, out{nullptr};  // Cs → Cz, in two halves; Cz → Cz
};
TORCH_MODULE(ResiduesToPairs);

/// Attention of residues, with a gate and a bias from the pairs: algorithm 7 for one sequence.
class ResidueAttentionImpl : public Cloneable<ResidueAttentionImpl> {
 public:
  /// n_heads heads of Cs / n_heads. Throws c10::Error if that is not whole.
  ResidueAttentionImpl(int64_t residue_width, int64_t pair_width, int64_t n_heads);
  /// residues: (B, L, Cs); pairs: (B, L, L, Cz); mask: (B, L) float, 0 or 1 → the update (B, L, Cs)
  torch::Tensor forward(const torch::Tensor& residues, const torch::Tensor& pairs, const torch::Tensor& mask);
  auto arguments() const { return std::tuple(out->n_inputs(), bias->n_inputs(), n_heads_); }

  Norm norm{nullptr}, pair_norm{nullptr};
  Linear bias{nullptr};  // Cz → H
  Linear qkv{nullptr};   // Cs → H·3Dh: q, k and v of the first head come first
  Linear gate{nullptr}, out{nullptr};

 private:
  int64_t n_heads_;
};
TORCH_MODULE(ResidueAttention);

/// Norm and two linear maps with ReLU between them: algorithms 9 and 15.
class FoldingTransitionImpl : public Cloneable<FoldingTransitionImpl> {
 public:
  /// width: of residues or pairs; the hidden vectors are four times as wide.
  explicit FoldingTransitionImpl(int64_t width);
  /// (…, C) → the update (…, C)
  torch::Tensor forward(const torch::Tensor& x);
  auto arguments() const { return std::tuple(up->n_inputs()); }

  Norm norm{nullptr};
  Linear up{nullptr}, down{nullptr};
};
TORCH_MODULE(FoldingTransition);

}  // namespace zoo
