#include "models/families/decoder.h"

#include <torch/types.h>

#include "models/initialize.h"

namespace zoo {
namespace {

// Rows padded on the right become rows padded on the left, so that all of them end in the same column of the
// cache and grow together.
torch::Tensor padded_on_the_left(const torch::Tensor& ids, const torch::Tensor& starts) {
  const auto columns = torch::arange(ids.size(1), ids.options()).unsqueeze(0) - starts.unsqueeze(1);
  return ids.gather(1, columns.remainder(ids.size(1)));
}

}  // namespace

DecoderModel::DecoderModel(const ModelConfig& config, const ModelPurpose& purpose)
    : purpose_(purpose), max_length_(config.max_positions) {
  token_embedding_ = register_module("token_embedding", make_token_embedding(config, purpose));
  decoder_ = register_module("decoder", Stack(config, StackRole::decoder, token_embedding_));
  head_ = register_module("head", ModelHead(config, purpose, token_embedding_));
}

// Padding needs no mask here: it stands on the right, where no real position looks.
torch::Tensor DecoderModel::features(const Batch& batch) {
  const auto hidden = decoder_({.ids = batch.input.ids, .mask = Mask::causal()});
  return head_->prepare(select_positions(hidden, batch.positions));
}

torch::Tensor DecoderModel::hidden_states(const TokenBatch& input) {
  return decoder_({.ids = input.ids, .mask = Mask::causal()});
}

void DecoderModel::attention_maps(const Batch& batch, AttentionMaps& maps) {
  decoder_({.ids = batch.input.ids,
            .mask = Mask::causal() & Mask::lengths(batch.input.lengths),
            .self_maps = &maps.decoder});
}

torch::Tensor DecoderModel::next_logits(const torch::Tensor& ids, DecodingState& state) {
  const auto hidden = decoder_({.ids = ids,
                                .mask = Mask::causal() & Mask::starts(state.starts),
                                .starts = state.starts,
                                .cache = &state.cache});
  return head_->project(head_->prepare(hidden.select(1, hidden.size(1) - 1)));
}

torch::Tensor DecoderModel::prefill(const TokenBatch& prompts, DecodingState& state) {
  if (!prompts.lengths.defined()) return next_logits(prompts.ids, state);
  state.starts = prompts.length() - prompts.lengths;
  return next_logits(padded_on_the_left(prompts.ids, state.starts), state);
}

torch::Tensor DecoderModel::step(const torch::Tensor& tokens, DecodingState& state) {
  return next_logits(tokens.unsqueeze(1), state);
}

}  // namespace zoo
