#include "models/model.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/weights/embedding.h"
#include "models/stack.h"

namespace zoo {

torch::Device Model::device() const {
  const auto weights = parameters();
  return weights.empty() ? buffers().front().device() : weights.front().device();
}

Batch Model::on_device(const Batch& batch) const {
  const auto to = device();
  if (!to.is_cpu()) {
    for (const auto& ids : {batch.input.ids, batch.decoder.ids})
      if (ids.defined() && ids.is_cpu() && ids.numel() > 0) require_vectors(ids.max().item<int64_t>());
    const auto& targets = batch.targets;
    if (targets.defined() && targets.is_cpu() && targets.scalar_type() == torch::kInt64 &&
        targets.numel() > 0) {
      if (const auto highest = targets.max().item<int64_t>(); highest >= n_outputs())
        throw DataError(fmt::format("the model has no output for the target {}: it has {} outputs", highest,
                                    n_outputs()));
    }
  }
  return batch.to(to);
}

void Model::check_tokens(std::span<const int64_t> ids) const {
  if (!ids.empty() && !device().is_cpu()) require_vectors(*std::ranges::max_element(ids));
}

void Model::require_vectors(int64_t highest) const {
  for (const auto& module : modules(/*include_self=*/false)) {
    if (const auto* const table = module->as<TokenEmbeddingImpl>()) table->check(highest);
  }
}

void Model::checkpoint_activations(ActivationCheckpointing what) {
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* const stack = module->as<StackImpl>()) stack->checkpoint_activations(what);
  }
}

void Model::keep_residual_in(ResidualStream format) {
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* const stack = module->as<StackImpl>()) stack->keep_residual_in(format);
  }
}

torch::Tensor LogitsAt::select(const torch::Tensor& hidden, const PositionRange& range) const {
  const int64_t n_rows = hidden.size(0), n_columns = hidden.size(1);
  switch (kind_) {
    case Kind::every_token:
      return hidden.reshape({n_rows * n_columns, -1});
    case Kind::positions:
      return hidden.reshape({n_rows * n_columns, -1}).index_select(0, flat_);
    case Kind::last_token:
      break;
  }
  if (!range.counts().defined()) return hidden.select(1, n_columns - 1);
  const auto last = (range.counts() - 1).clamp_min(0);
  return hidden.index({torch::arange(n_rows, last.options()), last});
}

torch::Tensor GenerativeModel::prefill(const Batch& sources, DecodingState& state) {
  state = begin(sources);
  return forward(first_tokens(sources.input), state);
}

void fail_not_a_number() {
  throw CheckpointError(
      "the model's logits are not numbers: its weights are damaged, or its training diverged; take an "
      "earlier checkpoint");
}

}  // namespace zoo
