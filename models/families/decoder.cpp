// The decoder family: GPT-2 (Radford et al. 2019), Llama (Touvron et al. 2023), Qwen, Mistral and their
// variants. Each position sees itself and the positions before it. For language modelling, and classification
// by the last token.

#include <torch/types.h>

#include "models/families/family_model.h"

namespace zoo {
namespace {

class DecoderModel final : public Cloneable<DecoderModel, FamilyModel>, public GenerativeModel {
 public:
  DecoderModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor hidden_states(const Batch& batch) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  GenerativeModel* generative() override {
    return purpose_.head == HeadKind::language_modeling ? this : nullptr;
  }

  DecodingState begin(const Batch& sources) override;
  TokenBatch first_tokens(const TokenBatch& prompts) override { return prompts; }
  torch::Tensor forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) override {
    return read_tokens({decoder_embedder_, decoder_, head_}, tokens, state, at);
  }
  bool continues_prompt() const override { return purpose_.prompt == PromptUse::continued; }
  int64_t max_length() const override { return config_.max_positions; }
  bool sequence_has_prompt() const override { return true; }

 private:
  TokenEmbedding token_embedding_{nullptr};
  TokenEmbedder decoder_embedder_{nullptr};
  Stack decoder_{nullptr};
};

DecoderModel::DecoderModel(const ModelConfig& config, const ModelPurpose& purpose)
    : Cloneable(config, purpose) {
  token_embedding_ = register_module("token_embedding", make_token_embedding(config, purpose.vocab_size));
  decoder_embedder_ = register_module("decoder_embedder", TokenEmbedder(config, token_embedding_));
  decoder_ = register_module("decoder", Stack(config, StackRole::decoder));
  head_ = register_module("head", ModelHead(config, purpose, token_embedding_));
}

// Padding needs no mask here: it is on the right, and the causal mask hides it from all real positions.
torch::Tensor DecoderModel::hidden_states(const Batch& batch) {
  return decoder_({.x = decoder_embedder_->forward(batch).vectors, .mask = Mask::causal()});
}

torch::Tensor DecoderModel::features(const Batch& batch) {
  return head_->prepare_at(hidden_states(batch), batch.positions);
}

void DecoderModel::attention_maps(const Batch& batch, AttentionMaps& maps) {
  const auto embedded = decoder_embedder_->forward(batch);
  decoder_({.x = embedded.vectors,
            .mask = Mask::causal() & Mask::lengths(embedded.lengths),
            .self_maps = &maps.decoder});
}

DecodingState DecoderModel::begin(const Batch& sources) {
  DecodingState state(sources.input.batch_size(), sources.input.ids.device());
  decoder_->begin(state);
  return state;
}

void count_decoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                   const PassShape& shape) {
  const auto n_tokens = static_cast<double>(shape.batch_size * shape.length);
  count_token_table(account, "token_embedding", config, purpose.vocab_size, n_tokens);
  count_token_embedder(account, "decoder_embedder", config, n_tokens);
  count_stack(account, "decoder", config, StackRole::decoder,
              {.batch_size = shape.batch_size, .n_queries = shape.length, .n_keys = shape.length});
  count_head(account, config, purpose, Pooling::none, static_cast<double>(shape.n_targets));
}

}  // namespace

ModelFamily decoder_family() {
  ModelFamily family;
  family.name = name_of(Architecture::decoder);
  family.doc = "GPT-2, Llama and similar models: every position sees the positions before it.";
  family.shape = FamilyShape::decoder;
  family.heads = {HeadKind::language_modeling, HeadKind::classification, HeadKind::token_classification,
                  HeadKind::regression, HeadKind::none};
  family.make = makes<DecoderModel>();
  family.count = count_decoder;
  return family;
}

}  // namespace zoo
