#pragma once
// The decoder family: GPT-2 (Radford et al. 2019), Llama (Touvron et al. 2023), Qwen, Mistral and what their
// keys can be turned into. Each position sees the ones before it; for language modelling, and classification
// by the last token.

#include "models/heads.h"
#include "models/model.h"
#include "models/stack.h"

namespace zoo {

class DecoderModel : public Model, public GenerativeModel {
 public:
  DecoderModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const TokenBatch& input) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  GenerativeModel* generative() override { return purpose_.head == Head::language_modeling ? this : nullptr; }

  torch::Tensor prefill(const TokenBatch& prompts, DecodingState& state) override;
  torch::Tensor step(const torch::Tensor& tokens, DecodingState& state) override;
  bool continues_prompt() const override { return purpose_.prompt == PromptUse::continued; }
  int64_t max_length() const override { return max_length_; }
  bool sequence_has_prompt() const override { return true; }

 private:
  torch::Tensor next_logits(const torch::Tensor& ids, DecodingState& state);

  TokenEmbedding token_embedding_{nullptr};
  Stack decoder_{nullptr};
  ModelHead head_{nullptr};
  ModelPurpose purpose_;
  int64_t max_length_;
};

}  // namespace zoo
