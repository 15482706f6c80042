#pragma once
// The keys of the family vit.

#include <array>
#include <optional>
#include <string_view>

#include "models/config/model_config.h"
#include "models/embedders/patch_embedder.h"

namespace zoo {

/// What a class is predicted from: a learned vector before the patches, the mean over the patches, both side
/// by side (DINOv2: Oquab et al. 2023), or that vector and the distillation token, with a classifier each
/// (DeiT: Touvron et al. 2021). Without a head, the last two are the class token alone.
enum class ImagePooling { class_token, mean, class_and_mean, class_and_distillation };
constexpr auto config_names(ImagePooling) {
  return std::to_array<std::string_view>({"class", "mean", "class_and_mean", "class_and_distillation"});
}

/// The keys of the family, beside `type: vit`.
struct VitConfig {
  int64_t patch_size = 16;
  std::optional<int64_t> image_size = {};  // default: the data's
  std::optional<int64_t> n_channels = {};  // default: the data's
  ImagePooling pooling = ImagePooling::class_token;
  bool distillation_token = false;  // a second learned vector, after the class token
  VitStem stem = VitStem::patches;
  int64_t stem_blocks = 0;  // residual blocks after each convolution of the stem
  ChannelNormKind stem_norm = ChannelNormKind::group;
};
void describe(ConfigVisitor& v, VitConfig& c);

/// Whether this is the configuration of such a model.
bool reads_patches(const ModelConfig& config);
/// Makes its configuration say the size and the channels that it has by default: those of the data.
void set_image(ModelConfig& config, const ImageShape& image);

}  // namespace zoo
