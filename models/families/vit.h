#pragma once
// The vision transformer (Dosovitskiy et al. 2021, DeiT: Touvron et al. 2021): an encoder over the patches of
// an image. For classification. Stochastic depth and layer scale are keys of every model.

#include <array>
#include <optional>
#include <string_view>

#include "models/embedders/patch_embedder.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/stack.h"

namespace zoo {

/// The vector from which a class is predicted: a learned one before the patches, or the mean over the
/// patches.
enum class ImagePooling { class_token, mean };
constexpr auto config_names(ImagePooling) { return std::to_array<std::string_view>({"class", "mean"}); }

/// The keys of the family, beside `type: vit`.
struct VitConfig {
  int64_t patch_size = 16;
  std::optional<int64_t> image_size = {};  // default: the data's
  std::optional<int64_t> n_channels = {};  // default: the data's
  ImagePooling pooling = ImagePooling::class_token;
  VitStem stem = VitStem::patches;
  int64_t stem_blocks = 0;  // residual blocks after each convolution of the stem
  ChannelNormKind stem_norm = ChannelNormKind::group;
};
void describe(ConfigVisitor& v, VitConfig& c);

class VitModel : public Model {
 public:
  VitModel(const ModelConfig& config, const ModelPurpose& purpose);

  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  bool mixes_rows() const override { return embedder_->mixes_rows(); }
  torch::Tensor hidden_states(const Batch& batch) override { return encode(batch, nullptr); }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override { encode(batch, &maps.encoder); }
  std::optional<PatchGrid> patch_grid(const Batch& batch) const override;

  void pretty_print(std::ostream& stream) const override;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  torch::Tensor encode(const Batch& batch, std::vector<torch::Tensor>* maps);

  PatchEmbedder embedder_{nullptr};
  Stack encoder_{nullptr};
  ModelHead head_{nullptr};
  ModelConfig config_;
  ModelPurpose purpose_;
};

/// Whether this is the configuration of such a model.
bool reads_patches(const ModelConfig& config);
/// Makes its configuration say the size and the channels that it has by default: those of the data.
void set_image(ModelConfig& config, const ImageShape& image);

ModelFamily vit_family();

}  // namespace zoo
