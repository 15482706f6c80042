#pragma once
// The keys of the family vit.

#include <array>
#include <optional>
#include <string_view>

#include "models/config/model_config.h"
#include "models/embedders/patch_embedder.h"

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

/// Whether this is the configuration of such a model.
bool reads_patches(const ModelConfig& config);
/// Makes its configuration say the size and the channels that it has by default: those of the data.
void set_image(ModelConfig& config, const ImageShape& image);

}  // namespace zoo
