#pragma once
// Residual networks that predict a class, or numbers, from an image (He et al. 2016): a linear map of the
// mean over the pixels of the last map of features.

#include "models/embedders/resnet.h"
#include "models/families/families.h"
#include "models/heads.h"

namespace zoo {

/// The keys of the family, beside `type: resnet`, are those of ResnetConfig.
class ResnetModel : public Model {
 public:
  ResnetModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  /// (B, h·w, C): the last map of features, row by row.
  torch::Tensor hidden_states(const Batch& batch) override;
  /// Throws c10::Error: there is no attention.
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  bool mixes_rows() const override { return network_->mixes_rows(); }

  void pretty_print(std::ostream& stream) const override;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  Resnet network_{nullptr};
  ModelHead head_{nullptr};
  ModelConfig config_;
  ModelPurpose purpose_;
};

ModelFamily resnet_family();

}  // namespace zoo
