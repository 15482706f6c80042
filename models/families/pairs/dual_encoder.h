#pragma once
// The keys of the family dual_encoder.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "models/comparing_model.h"
#include "models/config/model_config.h"
#include "models/families/vit.h"

namespace zoo {

/// Which tokens of its text a token sees: those before it (CLIP), or all (SigLIP).
enum class TextAttention { causal, bidirectional };
constexpr auto config_names(TextAttention) {
  return std::to_array<std::string_view>({"causal", "bidirectional"});
}

/// The token whose vector stands for a text.
///   last     the last one
///   end      the first one with the id `end_token`
///   highest  the first one with the highest id in the text, as in CLIP's first files
enum class TextPooling { last, end, highest };
constexpr auto config_names(TextPooling) {
  return std::to_array<std::string_view>({"last", "end", "highest"});
}

/// `architecture.image:`, the encoder of pictures: those keys of `model` that say what a vit computes, and
/// the keys of a vit.
struct PictureEncoderConfig {
  PictureEncoderConfig();
  ModelConfig model;
  VitConfig patches;
};
void describe(ConfigVisitor& v, PictureEncoderConfig& c);

/// The keys of the family, beside `type: dual_encoder`. Those of `model` itself describe the encoder of
/// texts.
struct DualEncoderConfig {
  int64_t width = 512;  // W
  PairScores scores = PairScores::softmax;
  TextAttention text_attention = TextAttention::causal;
  TextPooling text_pooling = TextPooling::last;
  std::optional<int64_t> end_token = {};  // text_pooling: end
  bool pad_texts = false;                 // to max_positions; the padding is read
  bool image_projection = true;           // without it, W is the width of image
  bool projection_bias = false;
  PictureEncoderConfig image = {};
};
void describe(ConfigVisitor& v, DualEncoderConfig& c);

/// Whether this is the configuration of such a model.
bool compares_pictures(const ModelConfig& config);
/// Makes its configuration say the size and the channels of its pictures, as set_image() for a vit.
void set_compared_image(ModelConfig& config, const ImageShape& image);
/// The configurations of both encoders of such a model, each a model by itself.
ModelConfig picture_encoder(const ModelConfig& config);
ModelConfig text_encoder(const ModelConfig& config);

}  // namespace zoo
