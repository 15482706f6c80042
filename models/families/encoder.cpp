#include "models/families/encoder.h"

#include <torch/types.h>

#include "models/initialize.h"

namespace zoo {

EncoderModel::EncoderModel(const ModelConfig& config, const ModelPurpose& purpose) : purpose_(purpose.head) {
  token_embedding_ = register_module("token_embedding", make_token_embedding(config, purpose));
  encoder_ = register_module("encoder", Stack(config, StackRole::encoder, token_embedding_));
  head_ = register_module("head", ModelHead(config, purpose, token_embedding_));
}

torch::Tensor EncoderModel::features(const Batch& batch) {
  const auto hidden = encoder_(
      {.ids = batch.input.ids, .segments = batch.segments, .mask = Mask::lengths(batch.input.lengths)});
  const bool pooled = purpose_ == Head::classification && !batch.positions.defined();
  return head_->prepare(pooled ? hidden.select(1, 0) : select_positions(hidden, batch.positions));
}

torch::Tensor EncoderModel::hidden_states(const TokenBatch& input) {
  return encoder_({.ids = input.ids, .mask = Mask::lengths(input.lengths)});
}

void EncoderModel::attention_maps(const Batch& batch, AttentionMaps& maps) {
  encoder_({.ids = batch.input.ids,
            .segments = batch.segments,
            .mask = Mask::lengths(batch.input.lengths),
            .self_maps = &maps.encoder});
}

}  // namespace zoo
