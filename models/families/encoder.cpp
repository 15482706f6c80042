// The encoder family: BERT (Devlin et al. 2019), RoBERTa and their variants. Every position sees all
// positions. For masked language modelling and classification.

#include <torch/types.h>

#include "models/contact_regression.h"
#include "models/families/family_model.h"

namespace zoo {
namespace {

Pooling encoder_pooling(const ModelConfig& config, const ModelPurpose& purpose) {
  return config.pooler && predicts_once(purpose.head) ? Pooling::pooler : Pooling::none;
}

/// (B, D): the mean of each row's vectors (B, T, D) without those of padding.
torch::Tensor mean_of_rows(const torch::Tensor& hidden, const torch::Tensor& lengths) {
  if (!lengths.defined()) return hidden.mean(1);
  const auto n = lengths.to(hidden.device()).unsqueeze(1);
  const auto seen = torch::arange(hidden.size(1), n.options()) < n;  // (B, T)
  return (hidden * seen.unsqueeze(2)).sum(1) / n.to(hidden.scalar_type());
}

class EncoderModel final : public Cloneable<EncoderModel, EncodingModel> {
 public:
  EncoderModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    const TokenEmbedding tokens =
        register_module("token_embedding", make_token_embedding(config, purpose.vocab_size));
    make_encoder("encoder_embedder", TokenEmbedder(config, tokens).ptr());
    head_ = register_module("head", ModelHead(config, purpose, tokens, encoder_pooling(config, purpose)));
    if (config.contact_regression)
      register_module("contact_regression", ContactRegression(config.n_layers * config.n_heads));
  }

  torch::Tensor features(const Batch& batch) override {
    const auto hidden = hidden_states(batch);
    const bool pooled = predicts_once(purpose_.head) && !batch.positions.defined();
    if (!pooled) return head_->prepare_at(hidden, batch.positions);
    const bool by_mean = config_.text_vector == TextVector::mean;
    return head_->prepare(by_mean ? mean_of_rows(hidden, batch.input.lengths) : hidden.select(1, 0));
  }
};

void count_encoder_model(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                         const PassShape& shape) {
  const auto n_tokens = static_cast<double>(shape.batch_size * shape.length);
  count_token_table(account, "token_embedding", config, purpose.vocab_size, n_tokens);
  count_token_embedder(account, "encoder_embedder", config, n_tokens);
  count_encoder(account, config, shape.batch_size, shape.length);
  count_head(account, config, purpose, encoder_pooling(config, purpose),
             static_cast<double>(shape.n_targets));
}

}  // namespace

ModelFamily encoder_family() {
  ModelFamily family;
  family.name = name_of(Architecture::encoder);
  family.doc = "BERT and similar models: every position sees all positions.";
  family.shape = FamilyShape::encoder;
  family.adds_found_positions = true;
  family.heads = {HeadKind::masked_language_modeling, HeadKind::classification,
                  HeadKind::token_classification, HeadKind::regression, HeadKind::none};
  family.make = makes<EncoderModel>();
  family.count = count_encoder_model;
  return family;
}

}  // namespace zoo
