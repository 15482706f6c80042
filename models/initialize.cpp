#include "models/initialize.h"

#include <cmath>

#include <torch/nn/init.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/positions/position_bias.h"

namespace zoo {
namespace {

using torch::nn::init::normal_;
using torch::nn::init::xavier_uniform_;

// The matrices that lie stacked in one are drawn one by one: the fan-out of each is its own.
void draw_parts(const torch::Tensor& weight, const std::vector<int64_t>& rows,
                const std::function<void(torch::Tensor)>& draw) {
  int64_t begin = 0;
  for (const int64_t n : rows) {
    draw(weight.narrow(0, begin, n));
    begin += n;
  }
}

double inverse_root(int64_t n) { return 1.0 / std::sqrt(static_cast<double>(n)); }

void initialize_normal(torch::nn::Module& model, const ModelConfig& config) {
  const double std = config.init_std;
  const double n_sub_layers = 2.0 * static_cast<double>(config.n_layers);
  const double output_std = config.init_residual_scaling ? std / std::sqrt(n_sub_layers) : std;
  for (const auto& module : model.modules()) {
    if (auto* linear = module->as<torch::nn::Linear>()) normal_(linear->weight, 0, std);
    if (auto* embedding = module->as<torch::nn::Embedding>()) normal_(embedding->weight, 0, std);
    if (auto* embedding = module->as<TokenEmbedding>()) normal_(embedding->weight, 0, std);
    if (auto* output = module->as<OutputProjection>(); output && output->weight.defined()) {
      normal_(output->weight, 0, std);
    }
  }
  for (const auto& module : model.modules()) {  // what is added to the residual stream
    if (auto* attention = module->as<Attention>()) {
      normal_(attention->out->weight, 0, output_std);
      for (auto& vectors : {attention->relative_keys, attention->relative_values})
        if (vectors.defined()) normal_(vectors, 0, std);
    }
    if (auto* feed_forward = module->as<FeedForward>()) normal_(feed_forward->down->weight, 0, output_std);
  }
}

void initialize_xavier(torch::nn::Module& model, const ModelConfig& config) {
  const double embedding_std = inverse_root(config.d_model);
  for (const auto& module : model.modules()) {
    if (auto* linear = module->as<torch::nn::Linear>()) xavier_uniform_(linear->weight);
    if (auto* embedding = module->as<torch::nn::Embedding>()) normal_(embedding->weight, 0, embedding_std);
    if (auto* embedding = module->as<TokenEmbedding>()) normal_(embedding->weight, 0, embedding_std);
    if (auto* output = module->as<OutputProjection>(); output && output->weight.defined()) {
      xavier_uniform_(output->weight);
    }
  }
  const auto xavier = [](const torch::Tensor& part) { xavier_uniform_(part); };
  for (const auto& module : model.modules()) {
    if (auto* attention = module->as<Attention>(); attention && attention->qkv) {
      const int64_t q = attention->options.n_heads() * attention->head_dim();
      const int64_t kv = attention->n_kv_heads() * attention->head_dim();
      draw_parts(attention->qkv->weight, {q, kv, kv}, xavier);
    }
    if (auto* feed_forward = module->as<FeedForward>(); feed_forward && feed_forward->gate_up) {
      draw_parts(feed_forward->gate_up->weight, {feed_forward->options.d_ff(), feed_forward->options.d_ff()},
                 xavier);
    }
  }
}

// As T5PreTrainedModel._init_weights in transformers, factor 1.
void initialize_t5(torch::nn::Module& model, const ModelConfig& config) {
  const double by_d_model = inverse_root(config.d_model);
  const double by_d_ff = inverse_root(config.feed_forward_width());
  const double by_heads = inverse_root(config.n_heads * config.head_width());
  const double query_std = by_d_model * inverse_root(config.head_width());
  for (const auto& module : model.modules()) {
    if (auto* linear = module->as<torch::nn::Linear>()) normal_(linear->weight, 0, by_d_model);
    if (auto* embedding = module->as<torch::nn::Embedding>()) normal_(embedding->weight, 0, by_d_model);
    if (auto* embedding = module->as<TokenEmbedding>()) normal_(embedding->weight, 0, 1.0);
    if (auto* output = module->as<OutputProjection>(); output && output->weight.defined()) {
      normal_(output->weight, 0, 1.0);
    }
  }
  for (const auto& module : model.modules()) {
    if (auto* attention = module->as<Attention>()) {
      const auto queries = attention->qkv
                               ? attention->qkv->weight.narrow(0, 0, config.n_heads * config.head_width())
                               : attention->q->weight;
      normal_(queries, 0, query_std);
      normal_(attention->out->weight, 0, by_heads);
    }
    if (auto* feed_forward = module->as<FeedForward>()) normal_(feed_forward->down->weight, 0, by_d_ff);
  }
}

}  // namespace

TokenEmbedding make_token_embedding(const ModelConfig& config, const ModelPurpose& purpose) {
  const double scale = config.scale_embeddings ? std::sqrt(static_cast<double>(config.d_model)) : 1.0;
  return TokenEmbedding(
      TokenEmbeddingOptions(config.vocab_size.value_or(purpose.vocab_size), config.d_model).scale(scale));
}

void initialize(torch::nn::Module& model, const ModelConfig& config) {
  const torch::NoGradGuard no_grad;
  switch (config.init) {
    case Initialization::normal:
      initialize_normal(model, config);
      break;
    case Initialization::xavier_uniform:
      initialize_xavier(model, config);
      break;
    case Initialization::t5:
      initialize_t5(model, config);
      break;
  }
  for (const auto& module : model.modules()) {
    if (auto* linear = module->as<torch::nn::Linear>(); linear && linear->bias.defined())
      linear->bias.zero_();
  }
}

}  // namespace zoo
