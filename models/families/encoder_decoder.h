#pragma once
// The encoder-decoder family: the original Transformer (Vaswani et al. 2017), T5 (Raffel et al. 2020), BART
// and Marian shapes. The encoder reads the source once. The decoder attends to the encoder's output.

#include "models/embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/stack.h"

namespace zoo {

class EncoderDecoderModel : public Model, public GenerativeModel {
 public:
  EncoderDecoderModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const Batch& batch) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  GenerativeModel* generative() override {
    return purpose_.head == HeadKind::language_modeling ? this : nullptr;
  }

  DecodingState begin(const Batch& sources) override;
  TokenBatch first_tokens(const TokenBatch& prompts) override;
  torch::Tensor forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) override;
  bool continues_prompt() const override { return false; }
  int64_t max_length() const override { return config_.max_positions; }

  void pretty_print(std::ostream& stream) const override;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  torch::Tensor encode(const Batch& batch, std::vector<torch::Tensor>* maps);
  torch::Tensor decode(const Batch& batch, AttentionMaps* maps);

  TokenEmbedding token_embedding_{nullptr};         // of both sides if they share it, else of the target side
  TokenEmbedding source_token_embedding_{nullptr};  // if the sides do not share an embedding
  TokenEmbedder encoder_embedder_{nullptr}, decoder_embedder_{nullptr};
  Stack encoder_{nullptr}, decoder_{nullptr};
  ModelHead head_{nullptr};
  ModelConfig config_;
  ModelPurpose purpose_;
};

ModelFamily encoder_decoder_family();

}  // namespace zoo
