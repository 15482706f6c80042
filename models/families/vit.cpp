// The vision transformer (Dosovitskiy et al. 2021, DeiT: Touvron et al. 2021): an encoder over the patches of
// an image. For classification. Stochastic depth and layer scale are keys of every model, so that DINOv2
// (Oquab et al. 2023) is a vit, too.

#include "models/families/vit.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/attention_pooling.h"
#include "models/config/layer_types.h"
#include "models/families/family_model.h"
#include "models/mixers/mixers.h"

namespace zoo {
namespace {

const VitConfig& vit_config(const ModelConfig& config) { return config.architecture.as<VitConfig>(); }

/// The vectors that the classifier reads. A model without a head returns one vector.
ClassifierInput classifier_input(const VitConfig& vit, const ModelPurpose& purpose) {
  if (purpose.head == HeadKind::none) return ClassifierInput::vector;
  switch (vit.pooling) {
    case ImagePooling::class_token:
    case ImagePooling::mean:
    case ImagePooling::attention:
    case ImagePooling::patch_mean:
      return ClassifierInput::vector;
    case ImagePooling::class_and_mean:
      return ClassifierInput::joined_pair;
    case ImagePooling::class_and_distillation:
      return ClassifierInput::separate_pair;
  }
  C10_THROW_ERROR(ValueError, "unknown ImagePooling");
}

/// The published vision transformers have a pooler where they have no other head (ViTModel).
Pooling vit_pooling(const ModelConfig& config, const ModelPurpose& purpose) {
  return config.pooler && purpose.head == HeadKind::none ? Pooling::pooler : Pooling::none;
}

/// The configuration of the encoder: with the grid of its patches, if scores depend on it.
ModelConfig encoder_config(ModelConfig config, const ModelPurpose& purpose) {
  if (!score_bias_type(config).needs_grid) return config;
  const auto options = patch_embedder_options(config, purpose);
  config.grid = GridShape{.rows = options.image().height / options.patch_size(),
                          .columns = options.image().width / options.patch_size(),
                          .n_before = options.n_before()};
  constexpr int64_t most = 1 << 12;  // places: each pair has a number in memory
  if (config.grid->length() > most)
    throw ConfigError(
        fmt::format("model.score_position: grid is for at most {} places, and the images have {}", most,
                    config.grid->length()));
  return config;
}

void validate_vit(const ModelConfig& config, const Complain& complain) {
  const auto& position = config.position;
  if (position == Position::sinusoidal) {
    if (config.d_model % 2 != 0)
      complain("d_model", "must be even: positions on a grid have a half for rows and one for columns");
  } else if (position != Position::none && position != Position::learned && position != Position::grid) {
    complain("position",
             fmt::format("of a vit must be learned, sinusoidal, grid or none, not {}: patches have two "
                         "coordinates",
                         position.type));
  }
  const auto& vit = vit_config(config);
  if (vit.distillation_token && !vit.has_class_token())
    complain("architecture", "has a distillation_token without a class token: pooling must not be mean");
  if (vit.pooling == ImagePooling::class_and_distillation && !vit.distillation_token)
    complain("architecture", "has `pooling: class_and_distillation` without `distillation_token: true`");
  if (vit.pool_norm && classifier_input(vit, {.head = HeadKind::classification}) != ClassifierInput::vector)
    complain("architecture",
             "has pool_norm, which is for one vector: pooling must be class, mean or patch_mean");
  if (vit.stem == VitStem::patches && vit.stem_blocks > 0)
    complain("architecture", "has stem_blocks without `stem: convolutions`");
  if (vit.stem == VitStem::convolutions) {
    const auto patch = static_cast<uint64_t>(vit.patch_size);
    if (patch < 2 || !std::has_single_bit(patch) || config.d_model % (vit.patch_size / 2) != 0) {
      complain(
          "architecture",
          fmt::format("has convolutions with a patch_size of {} and a d_model of {}: patch_size must be a "
                      "power of two, and d_model a multiple of its half",
                      vit.patch_size, config.d_model));
    }
  }
  if (vit.image_size && *vit.image_size < vit.patch_size)
    complain("architecture",
             fmt::format("has patches of {}, larger than images of {}", vit.patch_size, *vit.image_size));
}

AttentionPoolingOptions pooling_options(const ModelConfig& config) {
  return {cross_attention_options(config), feed_forward_options(config),
          norm_options(config, config.d_model)};
}

}  // namespace

PatchEmbedderOptions patch_embedder_options(const ModelConfig& config, const ModelPurpose& purpose) {
  const auto& vit = config.architecture.as<VitConfig>();
  const ImageShape image{.channels = vit.n_channels.value_or(purpose.image.channels),
                         .height = vit.image_size.value_or(purpose.image.height),
                         .width = vit.image_size.value_or(purpose.image.width)};
  return PatchEmbedderOptions(config.d_model, image, vit.patch_size)
      .position(config.position.kind().value_or(Position::none))
      .stem(vit.stem)
      .stem_blocks(vit.stem_blocks)
      .stem_norm(vit.stem_norm)
      .class_token(vit.has_class_token())
      .distillation_token(vit.distillation_token)
      .bias(vit.patch_bias)
      .norm(config.embedding_norm ? std::optional(norm_options(config, config.d_model)) : std::nullopt)
      .any_size(!score_bias_type(config).needs_grid)
      .dropout(config.dropout);
}

void describe(ConfigVisitor& v, VitConfig& c) {
  constexpr double largest = 1 << 14;
  v.field("patch_size", c.patch_size, "Side of a patch in pixels.", Limits::between(1, largest));
  v.field("image_size", c.image_size,
          "Side of the images that the table of positions is made for; default: data.images.size. Images of "
          "other sizes get positions in between.",
          Limits::between(1, largest));
  v.field("n_channels", c.n_channels, "Numbers of a pixel; default: data.images.channels.",
          Limits::between(1, largest));
  v.field(
      "stem", c.stem,
      "How pixels become vectors: patches, or convolutions (3 x 3, stride 2), with which small models need "
      "fewer images. For convolutions, patch_size is a power of two.");
  v.field("stem_blocks", c.stem_blocks,
          "Residual blocks of two 3 x 3 convolutions after each convolution of the stem: a hybrid of a "
          "residual network and a transformer.",
          Limits::between(0, 16));
  v.field("stem_norm", c.stem_norm,
          "The norm after each convolution of the stem: group, or batch, which learns faster but mixes the "
          "rows of a batch.");
  v.field("pooling", c.pooling,
          "What a class is predicted from: a class token, the mean of the patches, both, the class token and "
          "the distillation token with a classifier each, whose scores are averaged, what the attention of a "
          "learned query finds in the patches (SigLIP), or the mean of the patches beside a class token "
          "(patch_mean: BEiT).");
  v.field(
      "pool_norm", c.pool_norm,
      "A norm on the vector that a class is predicted from. In BEiT it stands in place of model.final_norm.");
  v.field("distillation_token", c.distillation_token,
          "Whether a second learned vector follows the class token, as in DeiT.");
  v.field("patch_bias", c.patch_bias, "A bias in the map from pixels to vectors (CLIP has none).");
}

bool reads_patches(const ModelConfig& config) { return config.architecture.type == "vit"; }

void set_image(ModelConfig& config, const ImageShape& image) {
  auto vit = vit_config(config);
  if (!vit.image_size) vit.image_size = image.height;
  if (!vit.n_channels) vit.n_channels = image.channels;
  config.architecture = Selection("vit", vit);
}

namespace {

class VitModel final : public Cloneable<VitModel, EncodingModel> {
 public:
  VitModel(const ModelConfig& config, const ModelPurpose& purpose)
      : Cloneable(encoder_config(config, purpose), purpose) {
    const auto options = patch_embedder_options(config, purpose);
    const int64_t shorter = std::min(options.image().height, options.image().width);
    if (shorter < options.patch_size())
      throw ConfigError(fmt::format("model.architecture: has patches of {}, larger than images of {}",
                                    options.patch_size(), shorter));
    make_encoder("embedder", PatchEmbedder(options).ptr());
    if (vit_config(config).pooling == ImagePooling::attention)
      pooling_ = register_module("pooling", AttentionPooling(pooling_options(config)));
    if (vit_config(config).pool_norm)
      pool_norm_ = register_module("pool_norm", Norm(norm_options(config, config.d_model)));
    head_ = register_module("head", ModelHead(config, purpose, nullptr, vit_pooling(config, purpose),
                                              classifier_input(vit_config(config), purpose)));
  }

  torch::Tensor features(const Batch& batch) override {
    const auto vectors = pooled(hidden_states(batch));
    return head_->prepare(pool_norm_ ? pool_norm_(vectors) : vectors);
  }

  std::optional<PatchGrid> patch_grid(const Batch& batch) const override {
    const auto& images = batch.field(fields::kImages);
    const auto& vit = vit_config(config_);
    return PatchGrid{.rows = images.size(2) / vit.patch_size,
                     .columns = images.size(3) / vit.patch_size,
                     .n_before = vit.n_before(),
                     .patch_size = vit.patch_size};
  }

 private:
  /// (B, T, D) → (B, D), or (B, 2D) if the classifier reads a pair.
  torch::Tensor pooled(const torch::Tensor& hidden) {
    const auto& vit = vit_config(config_);
    if (pooling_) return pooling_->forward(hidden);
    if (!vit.has_class_token()) return hidden.mean(1);
    if (vit.pooling == ImagePooling::patch_mean) return hidden.slice(1, vit.n_before()).mean(1);
    const auto first = hidden.select(1, 0);
    switch (classifier_input(vit, purpose_)) {
      case ClassifierInput::vector:
        return first;
      case ClassifierInput::joined_pair:
        return torch::cat({first, hidden.slice(1, vit.n_before()).mean(1)}, -1);
      case ClassifierInput::separate_pair:
        return torch::cat({first, hidden.select(1, 1)}, -1);
    }
    C10_THROW_ERROR(ValueError, "unknown ClassifierInput");
  }

  AttentionPooling pooling_{nullptr};
  Norm pool_norm_{nullptr};
};

void count_vit(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
               const PassShape& shape) {
  const auto options = patch_embedder_options(config, purpose);
  const int64_t n_special = options.n_before();
  const auto images = shape.sizes_of(fields::kImages);
  const int64_t n_patches =
      images.empty() ? shape.length - n_special : options.n_patches(images[2], images[3]);
  count_vit_body(account, "", encoder_config(config, purpose), purpose, shape.batch_size, n_patches);
  if (vit_config(config).pool_norm)
    count_norms(account, "pool_norm", norm_options(config, config.d_model), 1,
                static_cast<double>(shape.batch_size));
  count_head(account, config, purpose, vit_pooling(config, purpose), static_cast<double>(shape.batch_size),
             classifier_input(vit_config(config), purpose));
}

}  // namespace

void count_vit_body(CostAccount& account, const std::string& path, const ModelConfig& config,
                    const ModelPurpose& purpose, int64_t batch_size, int64_t n_patches) {
  const auto options = patch_embedder_options(config, purpose);
  const int64_t n_vectors = n_patches + options.n_before();
  count_patch_embedder(account, path + "embedder", options, batch_size, n_patches);
  count_stack(account, path + "encoder", config, StackRole::encoder,
              {.batch_size = batch_size, .n_queries = n_vectors, .n_keys = n_vectors});
  if (vit_config(config).pooling == ImagePooling::attention)
    count_attention_pooling(account, path + "pooling", pooling_options(config), batch_size, n_vectors);
}

ModelFamily vit_family() {
  ModelFamily family;
  family.name = "vit";
  family.doc = "Vision transformer: an encoder over the patches of an image.";
  family.has_grid = true;
  family.make_options = options_of<VitConfig>();
  family.heads = {HeadKind::classification, HeadKind::regression, HeadKind::none};
  family.make = makes<VitModel>();
  family.count = count_vit;
  family.input_length = [](const ModelConfig& config, const ModelPurpose& purpose) {
    return patch_embedder_options(config, purpose).length();
  };
  // One row of patches.
  family.example = [](const ModelConfig& config, const ModelPurpose& purpose, int64_t length) {
    const auto options = patch_embedder_options(config, purpose);
    Batch batch;
    batch.fields = {{fields::kImages, torch::zeros({1, options.image().channels, options.patch_size(),
                                                    options.patch_size() * length})}};
    batch.targets = torch::zeros({1}, torch::kInt64);
    return batch;
  };
  family.set_defaults = [](ModelConfig& config) {
    config.norm_eps = 1e-6;
    config.init = Initialization::xavier_uniform;
  };
  family.validate = validate_vit;
  return family;
}

}  // namespace zoo
