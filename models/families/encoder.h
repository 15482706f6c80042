#pragma once
// The encoder family: BERT (Devlin et al. 2019), RoBERTa and their variants. Every position sees all
// positions. For masked language modelling and classification.

#include "models/contact_regression.h"
#include "models/embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/stack.h"

namespace zoo {

class EncoderModel : public Model {
 public:
  EncoderModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const Batch& batch) override { return encode(batch, nullptr); }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override { encode(batch, &maps.encoder); }

  void pretty_print(std::ostream& stream) const override;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  torch::Tensor encode(const Batch& batch, std::vector<torch::Tensor>* maps);

  TokenEmbedding token_embedding_{nullptr};
  TokenEmbedder encoder_embedder_{nullptr};
  Stack encoder_{nullptr};
  ModelHead head_{nullptr};
  ContactRegression contact_regression_{nullptr};
  ModelConfig config_;
  ModelPurpose purpose_;
};

ModelFamily encoder_family();

}  // namespace zoo
