#pragma once
// The keys of the family vit.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "models/config/model_config.h"
#include "models/embedders/patch_embedder.h"
#include "models/model.h"

namespace zoo {

/// The vectors from which a class is predicted. Without a head, the two pairs are the class token alone.
///   class_token             a learned vector before the patches
///   mean                    the mean over the patches
///   patch_mean              the same, with a class token before the patches all the same (BEiT: Bao et al.
///                           2022)
///   class_and_mean          both, side by side (DINOv2: Oquab et al. 2023)
///   class_and_distillation  the class token and the distillation token, each with a classifier (DeiT:
///                           Touvron et al. 2021)
///   attention               what a learned query finds in the patches, see AttentionPooling (SigLIP)
///   patch_mean              the mean of the patches, beside a class token (BEiT)
enum class ImagePooling { class_token, mean, class_and_mean, class_and_distillation, attention, patch_mean };
constexpr auto config_names(ImagePooling) {
  return std::to_array<std::string_view>(
      {"class", "mean", "class_and_mean", "class_and_distillation", "attention", "patch_mean"});
}

/// The keys of the family, beside `type: vit`.
struct VitConfig {
  int64_t patch_size = 16;
  std::optional<int64_t> image_size = {};  // default: the data's
  std::optional<int64_t> n_channels = {};  // default: the data's
  ImagePooling pooling = ImagePooling::class_token;
  bool pool_norm = false;           // a norm on what a class is predicted from, one vector
  bool distillation_token = false;  // a second learned vector, after the class token
  bool patch_bias = true;           // in the map from pixels to vectors
  VitStem stem = VitStem::patches;
  int64_t stem_blocks = 0;  // residual blocks after each convolution of the stem
  ChannelNormKind stem_norm = ChannelNormKind::group;

  bool has_class_token() const { return pooling != ImagePooling::mean && pooling != ImagePooling::attention; }
  /// The learned vectors before the patches.
  int64_t n_before() const { return (has_class_token() ? 1 : 0) + (distillation_token ? 1 : 0); }
};
void describe(ConfigVisitor& v, VitConfig& c);

/// Adds the cost of the parts of a vit for `batch_size` images that give `n_patches` each: those before its
/// head. `path`: what the names of its modules begin with, "" or "image.".
void count_vit_body(CostAccount& account, const std::string& path, const ModelConfig& config,
                    const ModelPurpose& purpose, int64_t batch_size, int64_t n_patches);
/// How a vit with this configuration makes vectors of pixels.
PatchEmbedderOptions patch_embedder_options(const ModelConfig& config, const ModelPurpose& purpose);

/// Whether this is the configuration of such a model.
bool reads_patches(const ModelConfig& config);
/// Makes its configuration say the size and the channels that it has by default: those of the data.
void set_image(ModelConfig& config, const ImageShape& image);

}  // namespace zoo
