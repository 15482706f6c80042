#pragma once
// The encoder-decoder family: the original Transformer (Vaswani et al. 2017), T5 (Raffel et al. 2020), BART
// and Marian shapes. The encoder reads the source once; the decoder looks at its output while it writes.

#include "models/heads.h"
#include "models/model.h"
#include "models/stack.h"

namespace zoo {

class EncoderDecoderModel : public Model, public GenerativeModel {
 public:
  EncoderDecoderModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const TokenBatch& input) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  GenerativeModel* generative() override { return this; }

  torch::Tensor prefill(const TokenBatch& prompts, DecodingState& state) override;
  torch::Tensor step(const torch::Tensor& tokens, DecodingState& state) override;
  bool continues_prompt() const override { return false; }
  int64_t max_length() const override { return max_length_; }

 private:
  torch::Tensor decode(const Batch& batch, AttentionMaps* maps);

  TokenEmbedding token_embedding_{nullptr};         // of both sides, or of the target side alone
  TokenEmbedding source_token_embedding_{nullptr};  // where the sides do not share
  Stack encoder_{nullptr}, decoder_{nullptr};
  ModelHead head_{nullptr};
  int64_t max_length_, start_token_;
};

}  // namespace zoo
