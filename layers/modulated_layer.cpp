#include "layers/modulated_layer.h"

#include <torch/types.h>

#include "kernels/dropout.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

LinearOptions modulation_options(int64_t condition_width, int64_t n_outputs) {
  return linear_options(condition_width, n_outputs, WeightUse::modulation);
}

/// `n` vectors of a condition, (B, 1, D) each.
std::vector<torch::Tensor> modulations(Linear& map, const torch::Tensor& condition, int64_t n) {
  return map(torch::silu(condition)).unsqueeze(1).chunk(n, -1);
}

}  // namespace

ModulatedLayerImpl::ModulatedLayerImpl(const ModulatedLayerOptions& options_) : options(options_) {
  const auto& layer = options.layer();
  TORCH_CHECK(!layer.experts() && !layer.cross_attention(),
              "a modulated layer has neither experts nor cross-attention");
  self_attention = register_module("self_attention", layer.self_attention()());
  feed_forward = register_module("feed_forward", FeedForward(layer.feed_forward()));
  attention_norm = register_module("attention_norm", Norm(layer.norm()));
  feed_forward_norm = register_module("feed_forward_norm", Norm(layer.norm()));
  modulation = register_module(
      "modulation", Linear(modulation_options(options.condition_width(), 6 * layer.norm().size())));
}

torch::Tensor ModulatedLayerImpl::forward(const torch::Tensor& x, const torch::Tensor& condition,
                                          const AttentionContext& context) {
  const double p = is_training() ? options.layer().dropout() : 0.0;
  const auto m = modulations(modulation, condition, 6);
  const auto attended = self_attention->forward(attention_norm(x) * (1 + m[1]) + m[0], context);
  const auto y = x + m[2] * dropout(attended, p);
  return y + m[5] * dropout(feed_forward(feed_forward_norm(y) * (1 + m[4]) + m[3]), p);
}

void ModulatedLayerImpl::pretty_print(std::ostream& stream) const {
  stream << Description("ModulatedLayer")
                .add("d_model", options.layer().norm().size())
                .add("condition_width", options.condition_width())
                .add("dropout", options.layer().dropout());
}

ModulatedNormImpl::ModulatedNormImpl(const NormOptions& norm_options, int64_t condition_width) {
  norm = register_module("norm", Norm(norm_options));
  modulation =
      register_module("modulation", Linear(modulation_options(condition_width, 2 * norm_options.size())));
}

torch::Tensor ModulatedNormImpl::forward(const torch::Tensor& x, const torch::Tensor& condition) {
  const auto m = modulations(modulation, condition, 2);
  return norm(x) * (1 + m[1]) + m[0];
}

void count_modulated_layer(CostAccount& account, const std::string& name,
                           const ModulatedLayerOptions& options, const AttentionShape& shape) {
  const auto& layer = options.layer();
  const auto n_rows = static_cast<double>(shape.batch_size);
  const auto n_tokens = n_rows * static_cast<double>(shape.n_queries);
  count_feed_forward(account, account.path(name, "feed_forward"), layer.feed_forward(), n_tokens);
  for (const auto* const norm : {"attention_norm", "feed_forward_norm"})
    count_norms(account, account.path(name, norm), layer.norm(), 1, n_tokens);
  count_linear(account, account.path(name, "modulation"), "linear",
               modulation_options(options.condition_width(), 6 * layer.norm().size()), n_rows);
}

}  // namespace zoo
