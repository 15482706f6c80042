#include "models/folding_model.h"

namespace zoo {

torch::Tensor residue_mask(const TokenBatch& chains, const torch::TensorOptions& options) {
  if (!chains.lengths.defined()) return torch::ones(chains.ids.sizes(), options);
  const auto places = torch::arange(chains.length(), chains.ids.options());
  return (places.unsqueeze(0) < chains.lengths.unsqueeze(1)).to(options.dtype());
}

torch::Tensor residue_features(const torch::Tensor& hidden, const Batch& batch) {
  if (batch.positions.defined()) return hidden.flatten(0, 1).index_select(0, batch.positions);
  const auto mask = residue_mask(batch.input, hidden.options().requires_grad(false)).unsqueeze(-1);
  return (hidden * mask).sum(1) / mask.sum(1);
}

}  // namespace zoo
