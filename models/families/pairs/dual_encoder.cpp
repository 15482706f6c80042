// Two encoders, one of pictures and one of texts, whose vectors are compared: CLIP (Radford et al. 2021) and
// SigLIP (Zhai et al. 2023). Each encoder is a model of another family without a head.

#include "models/families/pairs/dual_encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "layers/weights/construction.h"
#include "models/config/layer_types.h"
#include "models/families/family_model.h"
#include "models/families/model_keys.h"
#include "models/mixers/mixers.h"

namespace zoo {
namespace {

const DualEncoderConfig& dual_config(const ModelConfig& config) {
  return config.architecture.as<DualEncoderConfig>();
}

ModelPurpose without_head(ModelPurpose purpose) {
  purpose.head = HeadKind::none;
  return purpose;
}

LinearOptions text_projection_options(const ModelConfig& config) {
  const auto& dual = dual_config(config);
  return LinearOptions(config.d_model, dual.width).bias(dual.projection_bias);
}

LinearOptions image_projection_options(const ModelConfig& config) {
  const auto& dual = dual_config(config);
  return LinearOptions(dual.image.model.d_model, dual.width).bias(dual.projection_bias);
}

/// The logarithm of the factor on cosines, and what is added to them, before training: as the papers say.
double initial_log_scale(PairScores scores) {
  return std::log(scores == PairScores::softmax ? 1 / 0.07 : 10.0);
}
constexpr double kInitialBias = -10;

torch::Tensor unit_vectors(const torch::Tensor& vectors) {
  return vectors / vectors.norm(2, -1, /*keepdim=*/true);
}

class DualEncoderModel final : public Cloneable<DualEncoderModel, FamilyModel>, public ComparingModel {
 public:
  DualEncoderModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    const auto& dual = dual_config(config);
    const auto make = [&](const ModelConfig& encoder) {
      return model_families().at(encoder.architecture).make(encoder, without_head(purpose));
    };
    text_ = register_module("text", make(text_encoder(config)));
    image_ = register_module("image", make(picture_encoder(config)));
    text_projection_ = register_module("text_projection", Linear(text_projection_options(config)));
    if (dual.image_projection)
      image_projection_ = register_module("image_projection", Linear(image_projection_options(config)));
    const auto number = [](double value) {
      return drawn_tensor({1}, [value](torch::Tensor& tensor) { tensor.fill_(value); });
    };
    log_scale_ = register_parameter("log_scale", number(initial_log_scale(dual.scores)));
    if (dual.scores == PairScores::sigmoid) bias_ = register_parameter("bias", number(kInitialBias));
  }

  torch::Tensor image_vectors(const Batch& batch) override {
    const auto vectors = image_->features(batch);
    return image_projection_ ? image_projection_(vectors) : vectors;
  }
  torch::Tensor text_vectors(const Batch& batch) override {
    const auto texts = read_texts(batch);
    const auto hidden = text_->hidden_states(texts);
    return text_projection_(last_of_rows(hidden, places(texts.input) + 1));
  }
  torch::Tensor scores(const torch::Tensor& images, const torch::Tensor& texts) override {
    const auto cosines = torch::matmul(unit_vectors(images), unit_vectors(texts).t());
    const auto scaled = cosines * log_scale_.exp();
    return bias_.defined() ? scaled + bias_ : scaled;
  }
  PairScores pair_scores() const override { return dual_config(config_).scores; }

  /// The vectors of the texts, or of the pictures of a batch without texts.
  torch::Tensor features(const Batch& batch) override {
    return batch.input.defined() ? text_vectors(batch) : image_vectors(batch);
  }
  torch::Tensor logits(const torch::Tensor& features) override { return features; }
  int64_t n_outputs() const override { return dual_config(config_).width; }
  torch::Tensor hidden_states(const Batch& batch) override {
    return batch.input.defined() ? text_->hidden_states(read_texts(batch)) : image_->hidden_states(batch);
  }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override {
    if (batch.input.defined()) return text_->attention_maps(read_texts(batch), maps);
    image_->attention_maps(batch, maps);
  }
  std::optional<PatchGrid> patch_grid(const Batch& batch) const override {
    return batch.input.defined() ? std::nullopt : image_->patch_grid(batch);
  }
  /// In training every pair of a batch is compared with all others.
  bool mixes_rows() const override { return is_training(); }

 private:
  /// The texts as the encoder reads them.
  Batch read_texts(const Batch& batch) const {
    Batch texts;
    texts.input = batch.input;
    texts.first_row = batch.first_row;
    if (!dual_config(config_).pad_texts) return texts;
    const auto& ids = batch.input.ids;
    const int64_t n = ids.size(1);
    auto whole =
        torch::full({ids.size(0), std::max(n, config_.max_positions)}, purpose_.pad_token, ids.options());
    auto beginning = whole.narrow(1, 0, n);
    const auto& lengths = batch.input.lengths;
    beginning.copy_(
        lengths.defined() ? ids.masked_fill(columns(ids) >= lengths.unsqueeze(1), purpose_.pad_token) : ids);
    texts.input = {.ids = std::move(whole)};
    return texts;
  }

  static torch::Tensor columns(const torch::Tensor& ids) {
    return torch::arange(ids.size(1), ids.options()).unsqueeze(0);
  }

  /// (B) int64: the token of each text whose vector stands for it.
  torch::Tensor places(const TokenBatch& texts) const {
    const auto& dual = dual_config(config_);
    const auto& [ids, lengths] = texts;
    if (dual.text_pooling == TextPooling::last)
      return lengths.defined() ? lengths - 1 : torch::full({ids.size(0)}, ids.size(1) - 1, ids.options());
    const auto rank =
        dual.text_pooling == TextPooling::end ? (ids == *dual.end_token).to(ids.scalar_type()) : ids;
    // Of equal ones the first.
    return (lengths.defined() ? rank.masked_fill(columns(ids) >= lengths.unsqueeze(1), -1) : rank).argmax(1);
  }

  std::shared_ptr<Model> text_, image_;
  Linear text_projection_{nullptr}, image_projection_{nullptr};
  torch::Tensor log_scale_;  // (1)
  torch::Tensor bias_;       // (1); sigmoid only
};

void count_dual_encoder(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                        const PassShape& shape) {
  const auto& dual = dual_config(config);
  const int64_t B = shape.batch_size, T = dual.pad_texts ? config.max_positions : shape.length;
  const auto n_tokens = static_cast<double>(B * T);
  const bool is_causal = dual.text_attention == TextAttention::causal;
  const auto text = text_encoder(config), image = picture_encoder(config);
  count_token_table(account, "text.token_embedding", text, purpose.vocab_size, n_tokens);
  count_token_embedder(account, is_causal ? "text.decoder_embedder" : "text.encoder_embedder", text,
                       n_tokens);
  count_stack(account, is_causal ? "text.decoder" : "text.encoder", text,
              is_causal ? StackRole::decoder : StackRole::encoder,
              {.batch_size = B, .n_queries = T, .n_keys = T});
  const auto options = patch_embedder_options(image, purpose);
  const auto sizes = image_shape(shape, options.image());
  count_vit_body(account, "image.", image, purpose, B, options.n_patches(sizes.height, sizes.width));
  const auto n_rows = static_cast<double>(B);
  count_linear(account, "text_projection", "linear", text_projection_options(config), n_rows);
  if (dual.image_projection)
    count_linear(account, "image_projection", "linear", image_projection_options(config), n_rows);
}

void validate_dual_encoder(const ModelConfig& config, const Complain& complain) {
  const auto& dual = dual_config(config);
  const auto refuse = [&](std::string_view key, std::string_view problem) {
    complain(fmt::format("architecture.{}", key), problem);
  };
  validate(picture_encoder(config), [&](std::string_view key, std::string_view problem) {
    constexpr std::string_view own = "architecture";
    key == own ? refuse("image", problem) : refuse(fmt::format("image.{}", key), problem);
  });
  validate(text_encoder(config), complain);
  if (config.max_positions < 1 || (config.position != Position::learned && dual.pad_texts))
    refuse("pad_texts", "needs learned positions");
  if ((dual.text_pooling == TextPooling::end) != dual.end_token.has_value())
    refuse("end_token", "belongs to `text_pooling: end`: set both or none");
  const auto pooling = dual.image.patches.pooling;
  if (pooling == ImagePooling::class_and_mean || pooling == ImagePooling::class_and_distillation)
    refuse("image.pooling", "gives a classifier two vectors, and here is none: class, mean or attention");
  if (!dual.image_projection && dual.width != dual.image.model.d_model)
    refuse("width", fmt::format("is {}, but pictures have vectors of {} and no image_projection", dual.width,
                                dual.image.model.d_model));
}

}  // namespace

PictureEncoderConfig::PictureEncoderConfig() {
  model.d_model = 768;
  model.n_layers = 12;
  model.n_heads = 12;
  model.dropout = 0;
  model.position = Position::learned;
  model.pooler = false;
}

void describe(ConfigVisitor& v, PictureEncoderConfig& c) {
  auto& m = c.model;
  describe_inner_encoder(v, m);
  v.selection("position", m.position, position_types(), "How the model encodes the places of patches.");
  v.selections("attention", m.attention, mixer_types(), "The mixer of positions in each layer.");
  v.field("bias", m.bias, "Biases in linear maps and layer norms.");
  v.field("embedding_norm", m.embedding_norm,
          "A norm on the vectors of patches with their positions (CLIP).");
  v.field("dropout", m.dropout, "Dropout on embeddings and sub-layer outputs.", {.min = 0, .max = 0.99});
  v.field("attention_dropout", m.attention_dropout, "Dropout on attention weights.", {.min = 0, .max = 0.99});
  v.field("layer_scale", m.layer_scale,
          "Initial value of learned factors on the sub-layer outputs; default: no factors.",
          Limits::positive());
  describe(v, c.patches);
}

void describe(ConfigVisitor& v, DualEncoderConfig& c) {
  constexpr double widest = 1 << 20, largest_id = 1 << 30;
  v.field("width", c.width, "Width of the vectors of texts and pictures that are compared.",
          Limits::between(1, widest));
  v.field("scores", c.scores,
          "softmax: of the texts in a batch one fits a picture, and the reverse (CLIP); sigmoid: each pair "
          "fits or not by itself (SigLIP).");
  v.field("text_attention", c.text_attention,
          "causal: a token sees those before it (CLIP); bidirectional: all of the text (SigLIP).");
  v.field("text_pooling", c.text_pooling,
          "The token whose vector stands for a text: the last one, the first one with the id end_token, or "
          "the first one with the highest id.");
  v.field("end_token", c.end_token, "text_pooling: end: the id of the token.",
          Limits::between(0, largest_id));
  v.field("pad_texts", c.pad_texts,
          "Texts are padded to max_positions, and the padding is read, as SigLIP was trained.");
  v.field("image_projection", c.image_projection,
          "A map from the vectors of pictures to the width; without it they have the width already.");
  v.field("projection_bias", c.projection_bias, "Biases in the maps to the width.");
  v.field("image", c.image, "The encoder of pictures. The keys of model describe that of texts.");
}

bool compares_pictures(const ModelConfig& config) { return config.architecture.type == "dual_encoder"; }

void set_compared_image(ModelConfig& config, const ImageShape& image) {
  auto dual = dual_config(config);
  auto& patches = dual.image.patches;
  patches.image_size = patches.image_size.value_or(image.height);
  patches.n_channels = patches.n_channels.value_or(image.channels);
  config.architecture = Selection("dual_encoder", dual);
}

ModelConfig picture_encoder(const ModelConfig& config) {
  const auto& image = dual_config(config).image;
  auto model = image.model;
  model.architecture = Selection("vit", image.patches);
  return model;
}

ModelConfig text_encoder(const ModelConfig& config) {
  auto model = config;
  const bool is_causal = dual_config(config).text_attention == TextAttention::causal;
  model.architecture = is_causal ? Architecture::decoder : Architecture::encoder;
  model.pooler = false;
  return model;
}

ModelFamily dual_encoder_family() {
  ModelFamily family;
  family.name = "dual_encoder";
  family.doc = "CLIP and SigLIP: an encoder of pictures and one of texts, whose vectors are compared.";
  family.make_options = options_of<DualEncoderConfig>();
  family.heads = {HeadKind::none};
  family.reads_texts = true;
  family.make = makes<DualEncoderModel>();
  family.count = count_dual_encoder;
  // Of the text of a pair.
  family.input_length = [](const ModelConfig& config, const ModelPurpose&) { return config.max_positions; };
  family.set_defaults = [](ModelConfig& config) {
    config.max_positions = 77;
    config.dropout = 0;
    config.pooler = false;
  };
  family.validate = validate_dual_encoder;
  return family;
}

}  // namespace zoo
