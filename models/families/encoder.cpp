#include "models/families/encoder.h"

#include <torch/types.h>

#include "models/families/model_description.h"

namespace zoo {
namespace {

Pooling encoder_pooling(const ModelConfig& config, const ModelPurpose& purpose) {
  return config.pooler && predicts_once(purpose.head) ? Pooling::pooler : Pooling::none;
}

void count_encoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                   const PassShape& shape) {
  const auto n_tokens = static_cast<double>(shape.batch_size * shape.length);
  count_table(account, account.path("", "token_embedding"), config.vocab_size.value_or(purpose.vocab_size),
              config.d_model, n_tokens);
  count_token_embedder(account, "encoder_embedder", config, n_tokens);
  count_stack(account, "encoder", config, StackRole::encoder,
              {.batch_size = shape.batch_size, .n_queries = shape.length, .n_keys = shape.length});
  count_head(account, config, purpose, encoder_pooling(config, purpose),
             static_cast<double>(shape.n_targets));
}

}  // namespace

EncoderModel::EncoderModel(const ModelConfig& config, const ModelPurpose& purpose)
    : config_(config), purpose_(purpose) {
  token_embedding_ = register_module("token_embedding", make_token_embedding(config, purpose.vocab_size));
  encoder_embedder_ = register_module("encoder_embedder", TokenEmbedder(config, token_embedding_));
  encoder_ = register_module("encoder", Stack(config, StackRole::encoder));
  head_ =
      register_module("head", ModelHead(config, purpose, token_embedding_, encoder_pooling(config, purpose)));
  if (config.contact_regression) {
    contact_regression_ =
        register_module("contact_regression", ContactRegression(config.n_layers * config.n_heads));
  }
}

torch::Tensor EncoderModel::encode(const Batch& batch, std::vector<torch::Tensor>* maps) {
  const auto embedded = encoder_embedder_->forward(batch);
  return encoder_({.x = embedded.vectors,
                   .mask = Mask::lengths(embedded.lengths),
                   .ids = embedded.ids,
                   .self_maps = maps});
}

torch::Tensor EncoderModel::features(const Batch& batch) {
  const auto hidden = encode(batch, nullptr);
  const bool pooled = predicts_once(purpose_.head) && !batch.positions.defined();
  return pooled ? head_->prepare(hidden.select(1, 0)) : head_->prepare_at(hidden, batch.positions);
}

std::shared_ptr<torch::nn::Module> EncoderModel::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<EncoderModel>(config_, purpose_);
}

void EncoderModel::pretty_print(std::ostream& stream) const {
  stream << describe_model("EncoderModel", config_, purpose_);
}

ModelFamily encoder_family() {
  ModelFamily family;
  family.name = name_of(Architecture::encoder);
  family.doc = "BERT and similar models: every position sees all positions.";
  family.shape = FamilyShape::encoder;
  family.heads = {HeadKind::masked_language_modeling, HeadKind::classification,
                  HeadKind::token_classification, HeadKind::regression, HeadKind::none};
  family.make = [](const ModelConfig& config, const ModelPurpose& purpose) -> std::shared_ptr<Model> {
    return std::make_shared<EncoderModel>(config, purpose);
  };
  family.count = count_encoder;
  return family;
}

}  // namespace zoo
