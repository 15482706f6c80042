#include "models/families/encoder_decoder.h"

#include <torch/types.h>

#include "models/initialize.h"

namespace zoo {

EncoderDecoderModel::EncoderDecoderModel(const ModelConfig& config, const ModelPurpose& purpose)
    : max_length_(config.max_positions), start_token_(purpose.start_token) {
  token_embedding_ = register_module("token_embedding", make_token_embedding(config, purpose));
  auto source = token_embedding_;
  if (!config.share_embeddings) {
    source = source_token_embedding_ =
        register_module("source_token_embedding", make_token_embedding(config, purpose));
  }
  encoder_ = register_module("encoder", Stack(config, StackRole::encoder, source));
  decoder_ = register_module("decoder", Stack(config, StackRole::decoder_with_memory, token_embedding_));
  head_ = register_module("head", ModelHead(config, purpose, token_embedding_));
}

torch::Tensor EncoderDecoderModel::decode(const Batch& batch, AttentionMaps* maps) {
  const auto source_mask = Mask::lengths(batch.input.lengths);
  const auto memory =
      encoder_({.ids = batch.input.ids, .mask = source_mask, .self_maps = maps ? &maps->encoder : nullptr});
  // Padding of the target stands on the right, where no real position looks: causality is mask enough. Maps
  // are looked at, so there it is hidden too.
  const auto target_mask = maps ? Mask::causal() & Mask::lengths(batch.decoder.lengths) : Mask::causal();
  return decoder_({.ids = batch.decoder.ids,
                   .mask = target_mask,
                   .memory = memory,
                   .memory_mask = source_mask,
                   .self_maps = maps ? &maps->decoder : nullptr,
                   .cross_maps = maps ? &maps->cross : nullptr});
}

torch::Tensor EncoderDecoderModel::features(const Batch& batch) {
  return head_->prepare(select_positions(decode(batch, nullptr), batch.positions));
}

torch::Tensor EncoderDecoderModel::hidden_states(const TokenBatch& input) {
  return encoder_({.ids = input.ids, .mask = Mask::lengths(input.lengths)});
}

void EncoderDecoderModel::attention_maps(const Batch& batch, AttentionMaps& maps) { decode(batch, &maps); }

torch::Tensor EncoderDecoderModel::prefill(const TokenBatch& prompts, DecodingState& state) {
  state.memory = hidden_states(prompts);
  state.memory_lengths = prompts.lengths;
  return step(torch::full({prompts.batch_size()}, start_token_, prompts.ids.options()), state);
}

torch::Tensor EncoderDecoderModel::step(const torch::Tensor& tokens, DecodingState& state) {
  const auto hidden = decoder_({.ids = tokens.unsqueeze(1),
                                .mask = Mask::causal(),
                                .memory = state.memory,
                                .memory_mask = Mask::lengths(state.memory_lengths),
                                .cache = &state.cache});
  return head_->project(head_->prepare(hidden.select(1, 0)));
}

}  // namespace zoo
