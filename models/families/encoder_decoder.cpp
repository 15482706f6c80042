#include "models/families/encoder_decoder.h"

#include <torch/types.h>

#include "models/families/model_description.h"
#include "models/families/read_tokens.h"

namespace zoo {
namespace {

/// BART's classifier has a dense map and tanh before its last map. A model without a head has no pooler.
Pooling two_sided_pooling(const ModelConfig& config, const ModelPurpose& purpose) {
  const bool scores_rows = predicts_once(purpose.head) && purpose.head != HeadKind::none;
  return config.pooler && scores_rows ? Pooling::pooler : Pooling::none;
}

/// The batch with a decoder that reads the source behind the start token, if it has none: to classify, BART
/// reads the source on both sides (Lewis et al. 2020, section 3.1).
Batch with_decoder(const Batch& batch, int64_t start_token) {
  if (batch.decoder.defined()) return batch;
  Batch both = batch;
  const auto& ids = batch.input.ids;
  const auto start = torch::full({ids.size(0), 1}, start_token, ids.options());
  both.decoder = {.ids = torch::cat({start, ids.narrow(1, 0, ids.size(1) - 1)}, 1),
                  .lengths = batch.input.lengths};
  return both;
}

/// (B, D): the vector of each row's last token, which is eos.
torch::Tensor last_of_rows(const torch::Tensor& hidden, const torch::Tensor& lengths) {
  if (!lengths.defined()) return hidden.select(1, hidden.size(1) - 1);
  return hidden.index({torch::arange(hidden.size(0), lengths.options()), lengths - 1});
}

void count_encoder_decoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                           const PassShape& shape) {
  const int64_t vocab_size = config.vocab_size.value_or(purpose.vocab_size);
  // Without a text of its own the decoder reads the source, see with_decoder().
  const int64_t decoder_length = shape.decoder_length > 0 ? shape.decoder_length : shape.length;
  const auto n_source = static_cast<double>(shape.batch_size * shape.length),
             n_target = static_cast<double>(shape.batch_size * decoder_length);
  count_table(account, account.path("", "token_embedding"), vocab_size, config.d_model,
              config.share_embeddings ? n_source + n_target : n_target, config.share_embeddings ? 2 : 1);
  if (!config.share_embeddings)
    count_table(account, account.path("", "source_token_embedding"), vocab_size, config.d_model, n_source);
  count_token_embedder(account, "encoder_embedder", config, n_source);
  count_stack(account, "encoder", config, StackRole::encoder,
              {.batch_size = shape.batch_size, .n_queries = shape.length, .n_keys = shape.length});
  count_token_embedder(account, "decoder_embedder", config, n_target);
  count_stack(account, "decoder", config, StackRole::decoder_with_memory,
              {.batch_size = shape.batch_size, .n_queries = decoder_length, .n_keys = shape.length});
  count_head(account, config, purpose, two_sided_pooling(config, purpose),
             static_cast<double>(shape.n_targets));
}

}  // namespace

EncoderDecoderModel::EncoderDecoderModel(const ModelConfig& config, const ModelPurpose& purpose)
    : config_(config), purpose_(purpose) {
  token_embedding_ = register_module("token_embedding", make_token_embedding(config, purpose.vocab_size));
  auto source = token_embedding_;
  if (!config.share_embeddings) {
    source = source_token_embedding_ =
        register_module("source_token_embedding", make_token_embedding(config, purpose.vocab_size));
  }
  encoder_embedder_ = register_module("encoder_embedder", TokenEmbedder(config, source));
  encoder_ = register_module("encoder", Stack(config, StackRole::encoder));
  decoder_embedder_ = register_module("decoder_embedder", TokenEmbedder(config, token_embedding_));
  decoder_ = register_module("decoder", Stack(config, StackRole::decoder_with_memory));
  head_ = register_module("head",
                          ModelHead(config, purpose, token_embedding_, two_sided_pooling(config, purpose)));
}

torch::Tensor EncoderDecoderModel::encode(const Batch& batch, std::vector<torch::Tensor>* maps) {
  const auto embedded = encoder_embedder_->forward(batch);
  return encoder_({.x = embedded.vectors,
                   .mask = Mask::lengths(embedded.lengths),
                   .ids = embedded.ids,
                   .self_maps = maps});
}

torch::Tensor EncoderDecoderModel::decode(const Batch& batch, AttentionMaps* maps) {
  const auto memory = encode(batch, maps ? &maps->encoder : nullptr);
  // Padding of the target is on the right, and the causal mask hides it from all real positions. Maps also
  // show the rows of padding, so for maps the mask hides padding explicitly.
  const auto mask = maps ? Mask::causal() & Mask::lengths(batch.decoder.lengths) : Mask::causal();
  const auto x =
      decoder_embedder_({.ids = batch.decoder.ids, .range = PositionRange(0, batch.decoder.length())});
  return decoder_({.x = x,
                   .mask = mask,
                   .memory = memory,
                   .memory_mask = Mask::lengths(batch.input.lengths),
                   .self_maps = maps ? &maps->decoder : nullptr,
                   .cross_maps = maps ? &maps->cross : nullptr});
}

torch::Tensor EncoderDecoderModel::features(const Batch& batch) {
  const auto whole = with_decoder(batch, purpose_.start_token);
  const auto hidden = decode(whole, nullptr);
  const bool once = predicts_once(purpose_.head) && !batch.positions.defined();
  return head_->prepare(once ? last_of_rows(hidden, whole.decoder.lengths)
                             : select_positions(hidden, batch.positions));
}

torch::Tensor EncoderDecoderModel::hidden_states(const Batch& batch) { return encode(batch, nullptr); }

void EncoderDecoderModel::attention_maps(const Batch& batch, AttentionMaps& maps) {
  decode(with_decoder(batch, purpose_.start_token), &maps);
}

DecodingState EncoderDecoderModel::begin(const Batch& sources) {
  DecodingState state(sources.input.batch_size(), sources.input.ids.device());
  decoder_->begin(state, hidden_states(sources), sources.input.row_lengths());
  return state;
}

TokenBatch EncoderDecoderModel::first_tokens(const TokenBatch& prompts) {
  return {.ids = torch::full({prompts.batch_size(), 1}, purpose_.start_token, prompts.ids.options())};
}

torch::Tensor EncoderDecoderModel::forward(const TokenBatch& tokens, DecodingState& state,
                                           const LogitsAt& at) {
  return read_tokens({decoder_embedder_, decoder_, head_}, tokens, state, at);
}

std::shared_ptr<torch::nn::Module> EncoderDecoderModel::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<EncoderDecoderModel>(config_, purpose_);
}

void EncoderDecoderModel::pretty_print(std::ostream& stream) const {
  stream << describe_model("EncoderDecoderModel", config_, purpose_);
}

ModelFamily encoder_decoder_family() {
  ModelFamily family;
  family.name = name_of(Architecture::encoder_decoder);
  family.doc = "The original Transformer, T5 and similar models: reads one sequence and writes another.";
  family.shape = FamilyShape::encoder_decoder;
  family.has_memory = true;
  family.heads = {HeadKind::language_modeling, HeadKind::classification, HeadKind::regression,
                  HeadKind::none};
  family.make = [](const ModelConfig& config, const ModelPurpose& purpose) -> std::shared_ptr<Model> {
    return std::make_shared<EncoderDecoderModel>(config, purpose);
  };
  family.count = count_encoder_decoder;
  return family;
}

}  // namespace zoo
