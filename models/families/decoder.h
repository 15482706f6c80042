#pragma once
// The decoder family: GPT-2 (Radford et al. 2019), Llama (Touvron et al. 2023), Qwen, Mistral and their
// variants. Each position sees itself and the positions before it. For language modelling, and classification
// by the last token.

#include "models/embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/stack.h"

namespace zoo {

class DecoderModel : public Model, public GenerativeModel {
 public:
  DecoderModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const Batch& batch) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  GenerativeModel* generative() override {
    return purpose_.head == HeadKind::language_modeling ? this : nullptr;
  }

  DecodingState begin(const Batch& sources) override;
  TokenBatch first_tokens(const TokenBatch& prompts) override { return prompts; }
  torch::Tensor forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) override;
  bool continues_prompt() const override { return purpose_.prompt == PromptUse::continued; }
  int64_t max_length() const override { return config_.max_positions; }
  bool sequence_has_prompt() const override { return true; }

  void pretty_print(std::ostream& stream) const override;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  TokenEmbedding token_embedding_{nullptr};
  TokenEmbedder decoder_embedder_{nullptr};
  Stack decoder_{nullptr};
  ModelHead head_{nullptr};
  ModelConfig config_;
  ModelPurpose purpose_;
};

ModelFamily decoder_family();

}  // namespace zoo
