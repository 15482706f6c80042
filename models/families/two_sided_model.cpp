#include "models/families/two_sided_model.h"

#include <utility>

#include <torch/types.h>

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

}  // namespace

TwoSidedModel::TwoSidedModel(const ModelConfig& config, const ModelPurpose& purpose)
    : EncodingModel(config, purpose),
      token_embedding_(register_module("token_embedding", make_token_embedding(config, purpose.vocab_size))) {
}

void TwoSidedModel::make_sides(std::shared_ptr<EmbedderImpl> source) {
  make_encoder("encoder_embedder", std::move(source));
  decoder_embedder_ = register_module("decoder_embedder", TokenEmbedder(config_, token_embedding_));
  decoder_ = register_module("decoder", Stack(config_, StackRole::decoder_with_memory));
  head_ = register_module(
      "head", ModelHead(config_, purpose_, token_embedding_, two_sided_pooling(config_, purpose_)));
}

torch::Tensor TwoSidedModel::decode(const Batch& batch, AttentionMaps* maps) {
  const auto memory = encode(batch, maps ? &maps->encoder : nullptr);
  // Padding of the target is on the right, and the causal mask hides it from all real positions. Maps also
  // show the rows of padding, so for maps the mask hides padding explicitly.
  const auto mask = maps ? Mask::causal() & Mask::lengths(batch.decoder.lengths) : Mask::causal();
  const auto x =
      decoder_embedder_({.ids = batch.decoder.ids, .range = PositionRange(0, batch.decoder.length())});
  return decoder_({.x = x,
                   .mask = mask,
                   .memory = memory.vectors,
                   .memory_mask = padding_mask(memory),
                   .self_maps = maps ? &maps->decoder : nullptr,
                   .cross_maps = maps ? &maps->cross : nullptr});
}

torch::Tensor TwoSidedModel::features(const Batch& batch) {
  const auto whole = with_decoder(batch, purpose_.start_token);
  const auto hidden = decode(whole, nullptr);
  const bool once = predicts_once(purpose_.head) && !batch.positions.defined();
  // The last token is eos.
  return head_->prepare(once ? last_of_rows(hidden, whole.decoder.lengths)
                             : select_positions(hidden, batch.positions));
}

void TwoSidedModel::attention_maps(const Batch& batch, AttentionMaps& maps) {
  decode(with_decoder(batch, purpose_.start_token), &maps);
}

DecodingState TwoSidedModel::begin(const Batch& sources) {
  const auto memory = encode(sources);
  DecodingState state(memory.vectors.size(0), memory.vectors.device());
  const TokenBatch rows{.ids = memory.vectors.select(2, 0), .lengths = memory.lengths};
  decoder_->begin(state, memory.vectors, rows.row_lengths());
  return state;
}

TokenBatch TwoSidedModel::first_tokens(const TokenBatch& prompts) {
  return {.ids = torch::full({prompts.batch_size(), 1}, purpose_.start_token, prompts.ids.options())};
}

void count_sides(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                 const SidesShape& shape) {
  count_encoder(account, config, shape.batch_size, shape.n_source);
  count_token_embedder(account, "decoder_embedder", config,
                       static_cast<double>(shape.batch_size * shape.n_target));
  count_stack(account, "decoder", config, StackRole::decoder_with_memory,
              {.batch_size = shape.batch_size, .n_queries = shape.n_target, .n_keys = shape.n_source});
  count_head(account, config, purpose, two_sided_pooling(config, purpose),
             static_cast<double>(shape.n_targets));
}

}  // namespace zoo
