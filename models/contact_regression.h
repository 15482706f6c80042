#pragma once
// Contacts of residues from attention maps (Rao et al. 2021, "Transformer protein language models are
// unsupervised structure learners").

#include <cstdint>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/module.h"

namespace zoo {

/// Maps (M, T, T) made symmetric, a + aᵀ, with the average product correction of each one:
/// a - (sums of rows) (sums of columns) / (sum of all).
torch::Tensor corrected_maps(const torch::Tensor& maps);

/// A logistic regression over corrected maps, EsmContactPredictionHead of transformers. It is fitted to known
/// structures after a model is trained: its numbers are buffers, which training does not change.
class ContactRegressionImpl : public Cloneable<ContactRegressionImpl> {
 public:
  /// n_maps: M, layers times heads. All numbers are zeros at first.
  explicit ContactRegressionImpl(int64_t n_maps);
  /// Attention maps (M, T, T), layer by layer, without the special tokens → (T, T): probabilities that two
  /// residues touch.
  torch::Tensor forward(const torch::Tensor& maps) const;
  auto arguments() const { return std::tuple(weight.size(1)); }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor weight;  // (1, M)
  torch::Tensor bias;    // (1)
};
TORCH_MODULE(ContactRegression);

}  // namespace zoo
