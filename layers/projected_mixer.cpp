#include "layers/projected_mixer.h"

#include <ATen/autocast_mode.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {

ProjectedMixerImpl::ProjectedMixerImpl(const AttentionOptions& options_) : HeadProjectionsImpl(options_) {}

void require_no_scores(const AttentionContext& context) {
  TORCH_CHECK(!context.memory.defined() && !context.remembered, "this mixer has no cross-attention");
  TORCH_CHECK(!context.bias.defined(), "this mixer has no scores to which a bias could be added");
}

ProjectedMixerImpl::Heads ProjectedMixerImpl::heads_of(const torch::Tensor& x,
                                                       const AttentionContext& context) {
  require_no_scores(context);
  return project_heads(x, context.query_positions);
}

torch::Tensor empty_state(const Linear& map, torch::IntArrayRef sizes) {
  const auto& weights = map->matrix().numbers();
  const auto type = weights.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  return torch::zeros(sizes, torch::dtype(type).device(weights.device()));
}

FullPrecision::FullPrecision(torch::Device device)
    : device_(device.type()), was_enabled_(at::autocast::is_autocast_enabled(device_)) {
  if (was_enabled_) at::autocast::set_autocast_enabled(device_, false);
}

FullPrecision::~FullPrecision() {
  if (was_enabled_) at::autocast::set_autocast_enabled(device_, true);
}

torch::Tensor FullPrecision::operator()(const torch::Tensor& x) const {
  return x.to(at::promote_types(x.scalar_type(), torch::kFloat32));
}

torch::Tensor real_tokens(const AttentionContext& context, int64_t n_tokens, torch::Device device) {
  const bool by_row = context.range && context.range->differs_by_row();
  TORCH_CHECK(by_row || context.mask.is_causal_or_lengths(),
              "this mixer hides later tokens and padding, and has no weights that another mask could hide");
  const auto columns = torch::arange(n_tokens, torch::dtype(torch::kInt64).device(device));
  torch::Tensor real;
  if (context.range && context.range->counts().defined())
    real = columns.lt(context.range->counts().to(device).unsqueeze(1));
  // With a state, keys are columns of all tokens that were read; their padding is in the counts.
  if (const auto& ends = context.mask.ends(); ends.defined() && !context.state) {
    const auto seen = columns.lt(ends.to(device).unsqueeze(1));
    real = real.defined() ? real.logical_and(seen) : seen;
  }
  return real;
}

}  // namespace zoo
