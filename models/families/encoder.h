#pragma once
// The encoder family: BERT (Devlin et al. 2019), RoBERTa and what their keys can be turned into. Every
// position sees every other; for masked language modelling and classification.

#include "models/heads.h"
#include "models/model.h"
#include "models/stack.h"

namespace zoo {

class EncoderModel : public Model {
 public:
  EncoderModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const TokenBatch& input) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;

 private:
  TokenEmbedding token_embedding_{nullptr};
  Stack encoder_{nullptr};
  ModelHead head_{nullptr};
  Head purpose_;
};

}  // namespace zoo
