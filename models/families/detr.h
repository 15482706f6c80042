#pragma once
// DETR (Carion et al. 2020, "End-to-End Object Detection with Transformers"): a convolutional network reads a
// picture, an encoder its feature map, and a decoder turns object queries into classes and boxes. As
// transformers' DetrForObjectDetection, but the auxiliary outputs are those of the authors' code: the
// decoder's norm is on the outputs alone, not on what the next layer reads.

#include "models/embedders/feature_map_embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/stack.h"

namespace zoo {

/// The keys of the family, beside `type: detr`.
struct DetrConfig {
  int64_t n_queries = 100;
  int64_t max_places = 50;  // rows, and columns, of the largest feature map with learned positions
  ResnetConfig backbone = {};
};
void describe(ConfigVisitor& v, DetrConfig& c);

/// Turns vectors into boxes with three linear maps and ReLU between them.
class BoxHeadImpl : public Module {
 public:
  explicit BoxHeadImpl(int64_t d_model);
  /// (…, D) → (…, 4) float, from 0 to 1
  torch::Tensor forward(const torch::Tensor& hidden);

  Linear first{nullptr}, second{nullptr}, last{nullptr};

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;
};
TORCH_MODULE(BoxHead);

class DetrModel : public Model, public DetectingModel, public WeightOwner {
 public:
  DetrModel(const ModelConfig& config, const ModelPurpose& purpose);

  /// (B·Q, D): the decoder's last output.
  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  /// The encoder's output, (B, T, D) with T = places of the feature map.
  torch::Tensor hidden_states(const Batch& batch) override;
  void attention_maps(const Batch& batch, AttentionMaps& maps) override;
  std::optional<PatchGrid> patch_grid(const Batch& batch) const override;
  bool mixes_rows() const override { return embedder_->backbone->mixes_rows(); }
  DetectingModel* detecting() override { return this; }
  Detections detect(const Batch& batch) override;
  int64_t n_queries() const override { return queries_.size(0); }

  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  struct Memory {
    torch::Tensor vectors, positions;  // (B, T, D), (B or 1, T, D)
    Mask mask;
  };
  Memory encode(const Batch& batch, AttentionMaps* maps);
  /// (L, B, Q, D): the outputs of all decoder layers.
  torch::Tensor decode(const Batch& batch, AttentionMaps* maps);

  FeatureMapEmbedder embedder_{nullptr};
  Stack encoder_{nullptr}, decoder_{nullptr};
  torch::Tensor queries_;       // (Q, D)
  Norm decoder_norm_{nullptr};  // if the decoder has no final norm of its own
  ModelHead head_{nullptr};     // C + 1 classes
  BoxHead box_head_{nullptr};
  ModelConfig config_;
  ModelPurpose purpose_;
};

ModelFamily detr_family();

}  // namespace zoo
