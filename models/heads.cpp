#include "models/heads.h"

#include <fmt/format.h>
#include <torch/types.h>

#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "layers/weights/description.h"
#include "models/config/layer_types.h"
#include "models/embedder.h"

namespace zoo {
namespace {

bool has_transform(const ModelConfig& config, HeadKind head) {
  return head == HeadKind::masked_language_modeling && config.mlm_transform;
}

/// Whether hidden states are brought to the width of the table of tokens: by the transform, or by a map
/// alone.
bool has_map(const ModelConfig& config, HeadKind head) {
  return has_transform(config, head) || config.embedding_width;
}

LinearOptions map_options(const ModelConfig& config, HeadKind head) {
  return LinearOptions(config.d_model, config.table_width())
      .bias(has_transform(config, head) ? config.head_bias
                                        : config.bias && config.embedding_map == EmbeddingMap::last);
}

LinearOptions pooler_options(const ModelConfig& config) {
  return LinearOptions(config.d_model, config.d_model).bias(config.head_bias);
}

torch::Tensor activate_pooled(PoolerActivation activation, const torch::Tensor& x) {
  switch (activation) {
    case PoolerActivation::tanh:
      return torch::tanh(x);
    case PoolerActivation::relu:
      return torch::relu(x);
    case PoolerActivation::gelu:
      return gelu(x, Phi::exact);
    case PoolerActivation::gelu_tanh:
      return gelu(x, Phi::by_tanh);
  }
  C10_THROW_ERROR(ValueError, "unknown PoolerActivation");
}

LinearOptions classifier_options(const ModelConfig& config, const ModelPurpose& purpose,
                                 ClassifierInput input) {
  const int64_t width = input == ClassifierInput::joined_pair ? 2 * config.d_model : config.d_model;
  return linear_options(width, purpose.n_classes, WeightUse::scores).bias(config.classifier_bias);
}

}  // namespace

ModelHeadImpl::ModelHeadImpl(const ModelConfig& config, const ModelPurpose& purpose,
                             const TokenEmbedding& token, Pooling pooling, ClassifierInput input)
    : config_(config),
      purpose_(purpose),
      token_(token ? token.ptr() : nullptr),
      pooling_(pooling),
      input_(input) {
  const int64_t d_model = config.d_model;
  if (!predicts_tokens(purpose.head)) {
    if (pooling == Pooling::pooler) {
      pooler = register_module("pooler", Linear(pooler_options(config)));
      if (config.pooler_norm)
        pooler_norm = register_module("pooler_norm", Norm(norm_options(config, d_model)));
    }
    if (purpose.head == HeadKind::none) return;
    const auto options = classifier_options(config, purpose, input);
    classifier = register_module("classifier", Linear(options));
    if (input == ClassifierInput::separate_pair)
      distillation_classifier = register_module("distillation_classifier", Linear(options));
    return;
  }
  if (has_map(config, purpose.head))
    transform = register_module("transform", Linear(map_options(config, purpose.head)));
  if (has_transform(config, purpose.head))
    norm = register_module("norm", Norm(norm_options(config, config.table_width())));
  const auto options = OutputProjectionOptions(config.table_width(), token->options.vocab_size())
                           .bias(config.output_bias)
                           .scale(config.output_scale.value_or(1.0))
                           .softcap(config.logits_softcap);
  output = register_module(
      "output", OutputProjection(options, config.tie_embeddings ? token : TokenEmbedding(nullptr)));
}

torch::Tensor ModelHeadImpl::prepare(const torch::Tensor& hidden) {
  if (transform && !norm) return transform(hidden);
  if (transform) return norm((*activation_of(config_))(transform(hidden)));
  auto pooled = pooler ? activate_pooled(config_.pooler_activation, pooler(hidden)) : hidden;
  if (pooler_norm) pooled = pooler_norm(pooled);
  return classifier ? dropout(pooled, is_training() ? config_.dropout : 0.0) : pooled;
}

torch::Tensor ModelHeadImpl::prepare_at(const torch::Tensor& hidden, const torch::Tensor& positions) {
  // Heads without dropout, or with one position a row, need not prepare positions that nobody asks for.
  const bool drops_positions = classifier && !predicts_once(purpose_.head);
  return drops_positions ? select_positions(prepare(hidden), positions)
                         : prepare(select_positions(hidden, positions));
}

torch::Tensor ModelHeadImpl::project(const torch::Tensor& features) {
  if (output) return output(features);
  if (distillation_classifier) {
    const auto vectors = features.chunk(2, -1);
    return (classifier(vectors[0]) + distillation_classifier(vectors[1])) / 2;
  }
  return classifier ? classifier(features) : features;
}

int64_t ModelHeadImpl::n_outputs() const {
  if (output) return output->options.vocab_size();
  return classifier ? classifier->n_outputs() : config_.d_model;
}

void ModelHeadImpl::pretty_print(std::ostream& stream) const {
  stream << Description("ModelHead")
                .add("kind", purpose_.head)
                .add("d_model", config_.d_model)
                .add("n_outputs", n_outputs())
                .add("dropout", classifier ? config_.dropout : 0.0);
}

bool is_of_classifier(std::string_view parameter) {
  return parameter.starts_with("head.classifier.") || parameter.starts_with("head.distillation_classifier.");
}

void count_head(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose, Pooling pooling,
                double n_targets, ClassifierInput input) {
  const int64_t d_model = config.d_model;
  if (!predicts_tokens(purpose.head)) {
    if (pooling == Pooling::pooler) {
      count_linear(account, account.path("head", "pooler"), "linear", pooler_options(config), n_targets);
      if (config.pooler_norm)
        count_norms(account, account.path("head", "pooler_norm"), norm_options(config, d_model), 1,
                    n_targets);
    }
    if (purpose.head == HeadKind::none) return;
    const auto options = classifier_options(config, purpose, input);
    count_linear(account, account.path("head", "classifier"), "linear", options, n_targets);
    if (input == ClassifierInput::separate_pair)
      count_linear(account, account.path("head", "distillation_classifier"), "linear", options, n_targets);
    return;
  }
  const int64_t width = config.table_width();
  if (has_map(config, purpose.head)) {
    count_linear(account, account.path("head", "transform"), "linear", map_options(config, purpose.head),
                 n_targets);
  }
  if (has_transform(config, purpose.head))
    count_norms(account, account.path("head", "norm"), norm_options(config, width), 1, n_targets);
  const int64_t vocab_size = config.vocab_size.value_or(purpose.vocab_size);
  account.add({.name = account.path("head", "output"),
               .kind = "output projection",
               .shape = account.text("{} → {}{}", width, vocab_size, config.tie_embeddings ? ", tied" : ""),
               .flops = 2 * n_targets * static_cast<double>(width * vocab_size),
               .activation_bytes = bytes_of(n_targets, vocab_size)});
}

torch::Tensor select_positions(const torch::Tensor& hidden, const torch::Tensor& positions) {
  const auto rows = hidden.reshape({-1, hidden.size(-1)});
  return positions.defined() ? rows.index_select(0, positions) : rows;
}

torch::Tensor last_of_rows(const torch::Tensor& hidden, const torch::Tensor& lengths) {
  if (!lengths.defined()) return hidden.select(1, hidden.size(1) - 1);
  return hidden.index({torch::arange(hidden.size(0), lengths.options()), lengths - 1});
}

}  // namespace zoo
