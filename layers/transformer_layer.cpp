#include "layers/transformer_layer.h"

#include <utility>

#include <torch/types.h>

#include "layers/decoding_layer.h"
#include "layers/weights/description.h"

namespace zoo {

ResidualOptions TransformerLayerOptions::residual() const {
  std::vector<std::string> names{"self_attention", "feed_forward"};
  if (cross_attention_) names.insert(names.begin() + 1, "cross_attention");
  return ResidualOptions(norm_, std::move(names))
      .placement(norm_placement_)
      .scale(residual_scale_)
      .dropout(dropout_)
      .layer_scale(layer_scale_)
      .stochastic_depth(stochastic_depth_)
      .first_norm(first_norm_);
}

TransformerLayerImpl::TransformerLayerImpl(const TransformerLayerOptions& options_) : options(options_) {
  self_attention = register_module("self_attention", options.self_attention()());
  if (options.cross_attention())
    cross_attention = register_module("cross_attention", Attention(*options.cross_attention()));
  if (options.experts())
    experts = register_module("experts", Experts(*options.experts()));
  else
    feed_forward = register_module("feed_forward", FeedForward(options.feed_forward()));
  residual = register_module("residual", Residual(options.residual()));
}

torch::Tensor TransformerLayerImpl::forward(const torch::Tensor& x, const LayerContext& context) {
  return advance(ResidualSum(x), context).value();
}

ResidualSum TransformerLayerImpl::advance(ResidualSum x, const LayerContext& context) {
  if (auto y = decoded_layer(*this, x, context)) return ResidualSum(std::move(*y));
  const auto attend = [&](const torch::Tensor& h) { return self_attention->forward(h, context.self); };
  const auto cross_attend = [&](const torch::Tensor& h) { return cross_attention(h, context.cross); };
  const auto transform = [&](const torch::Tensor& h) {
    return experts ? experts(h, context.self.mask.ends()) : feed_forward(h);
  };
  if (cross_attention)
    return residual->advance(std::move(x), {attend, cross_attend, transform}, context.sub_layers);
  return residual->advance(std::move(x), {attend, transform}, context.sub_layers);
}

void TransformerLayerImpl::pretty_print(std::ostream& stream) const {
  stream << Description("TransformerLayer")
                .add("d_model", options.norm().size())
                .add("norm_placement", options.norm_placement())
                .add("dropout", options.dropout());
}

void count_transformer_layer(CostAccount& account, const std::string& name,
                             const TransformerLayerOptions& options, const AttentionShape& shape) {
  const auto n_tokens = static_cast<double>(shape.batch_size * shape.n_queries);
  if (options.cross_attention())
    count_attention(account, account.path(name, "cross_attention"), "cross-attention",
                    *options.cross_attention(), shape);
  if (options.experts())
    count_experts(account, account.path(name, "experts"), *options.experts(), n_tokens);
  else
    count_feed_forward(account, account.path(name, "feed_forward"), options.feed_forward(), n_tokens);
  count_residual(account, account.path(name, "residual"), options.residual(), n_tokens);
}

}  // namespace zoo
