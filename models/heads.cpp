#include "models/heads.h"

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "layers/kernels/dropout.h"
#include "layers/kernels/linear.h"
#include "models/stack.h"

namespace zoo {

ModelHeadImpl::ModelHeadImpl(const ModelConfig& config, const ModelPurpose& purpose, TokenEmbedding token)
    : activation_(config.activation), dropout_(config.dropout) {
  const int64_t d_model = config.d_model;
  if (purpose.head == Head::classification) {
    if (config.architecture == Architecture::encoder && config.pooler) {
      pooler = register_module("pooler", torch::nn::Linear(d_model, d_model));
    }
    classifier = register_module("classifier", torch::nn::Linear(d_model, purpose.n_classes));
    return;
  }
  if (purpose.head == Head::masked_language_modeling && config.mlm_transform) {
    transform = register_module("transform", torch::nn::Linear(d_model, d_model));
    norm = register_module("norm", Norm(norm_options(config, d_model)));
  }
  const auto options = OutputProjectionOptions(d_model, token->options.vocab_size())
                           .bias(config.output_bias)
                           .scale(config.output_scale.value_or(1.0));
  output = register_module(
      "output", config.tie_embeddings ? OutputProjection(options, token) : OutputProjection(options));
}

torch::Tensor ModelHeadImpl::prepare(const torch::Tensor& hidden) {
  if (transform) return norm(activate(activation_, linear(transform, hidden)));
  if (!classifier) return hidden;
  const auto pooled = pooler ? torch::tanh(linear(pooler, hidden)) : hidden;
  return dropout(pooled, is_training() ? dropout_ : 0.0);
}

torch::Tensor ModelHeadImpl::project(const torch::Tensor& features) {
  return classifier ? linear(classifier, features) : output(features);
}

int64_t ModelHeadImpl::n_outputs() const {
  return classifier ? classifier->options.out_features() : output->options.vocab_size();
}

torch::Tensor select_positions(const torch::Tensor& hidden, const torch::Tensor& positions) {
  const auto rows = hidden.reshape({-1, hidden.size(-1)});
  return positions.defined() ? rows.index_select(0, positions) : rows;
}

}  // namespace zoo
