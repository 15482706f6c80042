#include "models/families/decoder.h"

#include <torch/types.h>

#include "models/families/model_description.h"
#include "models/families/read_tokens.h"

namespace zoo {
namespace {

void count_decoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                   const PassShape& shape) {
  const auto n_tokens = static_cast<double>(shape.batch_size * shape.length);
  count_table(account, account.path("", "token_embedding"), config.vocab_size.value_or(purpose.vocab_size),
              config.d_model, n_tokens);
  count_token_embedder(account, "decoder_embedder", config, n_tokens);
  count_stack(account, "decoder", config, StackRole::decoder,
              {.batch_size = shape.batch_size, .n_queries = shape.length, .n_keys = shape.length});
  count_head(account, config, purpose, Pooling::none, static_cast<double>(shape.n_targets));
}

}  // namespace

DecoderModel::DecoderModel(const ModelConfig& config, const ModelPurpose& purpose)
    : config_(config), purpose_(purpose) {
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

torch::Tensor DecoderModel::forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) {
  return read_tokens({decoder_embedder_, decoder_, head_}, tokens, state, at);
}

std::shared_ptr<torch::nn::Module> DecoderModel::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<DecoderModel>(config_, purpose_);
}

void DecoderModel::pretty_print(std::ostream& stream) const {
  stream << describe_model("DecoderModel", config_, purpose_);
}

ModelFamily decoder_family() {
  ModelFamily family;
  family.name = name_of(Architecture::decoder);
  family.doc = "GPT-2, Llama and similar models: every position sees the positions before it.";
  family.shape = FamilyShape::decoder;
  family.heads = {HeadKind::language_modeling, HeadKind::classification, HeadKind::token_classification,
                  HeadKind::regression, HeadKind::none};
  family.make = [](const ModelConfig& config, const ModelPurpose& purpose) -> std::shared_ptr<Model> {
    return std::make_shared<DecoderModel>(config, purpose);
  };
  family.count = count_decoder;
  return family;
}

}  // namespace zoo
