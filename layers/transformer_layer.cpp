#include "layers/transformer_layer.h"

#include <torch/types.h>

#include "layers/weights/description.h"

namespace zoo {

TransformerLayerImpl::TransformerLayerImpl(const TransformerLayerOptions& options_) : options(options_) {
  std::vector<std::string> names{"self_attention"};
  self_attention = register_module("self_attention", options.self_attention()());
  if (options.cross_attention()) {
    names.emplace_back("cross_attention");
    cross_attention = register_module("cross_attention", Attention(*options.cross_attention()));
  }
  names.emplace_back("feed_forward");
  feed_forward = register_module("feed_forward", FeedForward(options.feed_forward()));
  residual = register_module("residual", Residual(ResidualOptions(options.norm(), names)
                                                      .placement(options.norm_placement())
                                                      .dropout(options.dropout())
                                                      .layer_scale(options.layer_scale())
                                                      .stochastic_depth(options.stochastic_depth())));
}

torch::Tensor TransformerLayerImpl::forward(const torch::Tensor& x, const LayerContext& context) {
  const auto attend = [&](const torch::Tensor& h) { return self_attention->forward(h, context.self); };
  const auto cross_attend = [&](const torch::Tensor& h) { return cross_attention(h, context.cross); };
  const auto transform = [&](const torch::Tensor& h) { return feed_forward(h); };
  if (cross_attention) return residual(x, {attend, cross_attend, transform});
  return residual(x, {attend, transform});
}

std::shared_ptr<torch::nn::Module> TransformerLayerImpl::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<TransformerLayerImpl>(options);
}

void TransformerLayerImpl::pretty_print(std::ostream& stream) const {
  stream << Description("TransformerLayer")
                .add("d_model", options.norm().size())
                .add("norm_placement", options.norm_placement())
                .add("dropout", options.dropout());
}

}  // namespace zoo
