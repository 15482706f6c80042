// CLIP (Radford et al. 2021) and SigLIP (Zhai et al. 2023): an encoder of pictures and one of texts, whose
// vectors are compared.

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "interop/families/common.h"
#include "interop/families/families.h"
#include "models/families/pairs/dual_encoder.h"

namespace zoo {
namespace {

/// The values of keys that the configuration of an encoder leaves out.
struct EncoderDefaults {
  int64_t d_model, d_ff, n_layers, n_heads;
  std::string activation;
  double norm_eps;
};

const EncoderDefaults kClipText{512, 2048, 12, 8, "quick_gelu", 1e-5};
const EncoderDefaults kClipImage{768, 3072, 12, 12, "quick_gelu", 1e-5};
const EncoderDefaults kSiglip{768, 3072, 12, 12, "gelu_pytorch_tanh", 1e-6};  // both

/// The id of the end token in the first files of CLIP, which is wrong: with it the vector of a text is that of
/// its highest id.
constexpr int64_t kEndOfFirstFiles = 2;

/// The object `key` with the configuration of an encoder. Files of CLIP may have another one, key_dict, which
/// then counts alone.
ForeignConfig encoder_config(ForeignConfig& from, const std::string& key) {
  auto given = from.object(key);
  if (auto older = from.object(key + "_dict")) given = std::move(older);
  return given ? *std::move(given)
               : ForeignConfig(fmt::format("{}: {}", from.place(), key), nlohmann::json::object());
}

void read_encoder(ForeignConfig& from, const EncoderDefaults& defaults, ModelConfig& to) {
  to.d_model = from.integer("hidden_size", defaults.d_model);
  to.d_ff = from.integer("intermediate_size", defaults.d_ff);
  to.n_layers = from.integer("num_hidden_layers", defaults.n_layers);
  to.n_heads = from.integer("num_attention_heads", defaults.n_heads);
  to.activation = read_activation(from, "hidden_act", defaults.activation);
  to.norm_eps = from.number("layer_norm_eps", defaults.norm_eps);
  to.attention_dropout = from.number("attention_dropout", 0);
  to.dropout = 0;
  to.position = Position::learned;
  to.pooler = false;
  ignore_common_keys(from);
  ignore_generation_keys(from);
  from.require("is_decoder", false);
  from.require("add_cross_attention", false);
  // They are about the encoder alone, and in old files those of every model, which these do not use.
  from.ignore({"model_type", "architectures", "bos_token_id", "pad_token_id", "decoder_start_token_id",
               "tie_word_embeddings", "dropout", "projection_dim"});
}

void write_encoder(const ModelConfig& from, nlohmann::json& to) {
  to["hidden_size"] = from.d_model;
  to["intermediate_size"] = from.feed_forward_width();
  to["num_hidden_layers"] = from.n_layers;
  to["num_attention_heads"] = from.n_heads;
  to["hidden_act"] = foreign_name(from.activation);
  to["layer_norm_eps"] = from.norm_eps;
  to["attention_dropout"] = from.attention_dropout;
}

/// Sizes of pictures and patches.
void read_picture_sizes(ForeignConfig& from, int64_t usual_patch_size, PictureEncoderConfig& to,
                        ImageConfig& images) {
  images.size = from.integer("image_size", 224);
  images.channels = from.integer("num_channels", 3);
  to.patches.patch_size = from.integer("patch_size", usual_patch_size);
  to.patches.image_size = images.size;
  to.patches.n_channels = images.channels;
}

void write_picture_sizes(const Experiment& from, const PictureEncoderConfig& image, nlohmann::json& to) {
  to["image_size"] = image.patches.image_size.value_or(from.data.images.size);
  to["num_channels"] = image.patches.n_channels.value_or(from.data.images.channels);
  to["patch_size"] = image.patches.patch_size;
}

void read_texts(ForeignConfig& from, int64_t vocab_size, int64_t max_positions, ModelConfig& to) {
  to.vocab_size = from.integer("vocab_size", vocab_size);
  to.max_positions = from.integer("max_position_embeddings", max_positions);
}

void read_clip(ForeignConfig& from, Experiment& to) {
  constexpr int64_t usual_end = 49407;
  auto& model = to.model;
  DualEncoderConfig dual;
  dual.width = from.integer("projection_dim", 512);
  auto text = encoder_config(from, "text_config");
  read_encoder(text, kClipText, model);
  read_texts(text, 49408, 77, model);
  const int64_t end = text.integer("eos_token_id", usual_end);
  dual.text_pooling = end == kEndOfFirstFiles ? TextPooling::highest : TextPooling::end;
  if (dual.text_pooling == TextPooling::end) dual.end_token = end;
  text.finish();
  auto image = encoder_config(from, "vision_config");
  read_encoder(image, kClipImage, dual.image.model);
  read_picture_sizes(image, 32, dual.image, to.data.images);
  dual.image.model.embedding_norm = true;
  dual.image.patches.patch_bias = false;
  image.ignore({"eos_token_id"});
  image.finish();
  from.ignore({"logit_scale_init_value", "tie_word_embeddings"});
  model.architecture = Selection("dual_encoder", dual);
}

void read_siglip(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  DualEncoderConfig dual;
  dual.scores = PairScores::sigmoid;
  dual.text_attention = TextAttention::bidirectional;
  dual.pad_texts = true;
  dual.image_projection = false;
  dual.projection_bias = true;
  auto text = encoder_config(from, "text_config");
  read_encoder(text, kSiglip, model);
  read_texts(text, 32000, 64, model);
  dual.width = text.integer("projection_size", model.d_model);
  text.ignore({"eos_token_id"});
  text.finish();
  auto image = encoder_config(from, "vision_config");
  read_encoder(image, kSiglip, dual.image.model);
  read_picture_sizes(image, 16, dual.image, to.data.images);
  image.require("vision_use_head", true);
  dual.image.patches.pooling = ImagePooling::attention;
  image.ignore({"eos_token_id"});
  image.finish();
  from.ignore({"tie_word_embeddings"});
  model.architecture = Selection("dual_encoder", dual);
}

/// Both encoders, with what the families have in common. What is known of the vocabulary moves to that of
/// texts.
void write_encoders(const Experiment& from, std::string_view family, nlohmann::json& to) {
  const auto& dual = from.model.architecture.as<DualEncoderConfig>();
  for (const std::string key : {"text_config", "vision_config"}) {
    to.erase(key + "_dict");
    if (!to.contains(key) || !to[key].is_object()) to[key] = nlohmann::json::object();
  }
  auto& text = to["text_config"];
  write_encoder(from.model, text);
  if (to.contains("vocab_size")) text["vocab_size"] = to["vocab_size"];
  to.erase("vocab_size");
  text["max_position_embeddings"] = from.model.max_positions;
  text["model_type"] = fmt::format("{}_text_model", family);
  auto& image = to["vision_config"];
  write_encoder(dual.image.model, image);
  write_picture_sizes(from, dual.image, image);
  image["model_type"] = fmt::format("{}_vision_model", family);
}

void write_clip(const Experiment& from, nlohmann::json& to) {
  const auto& dual = from.model.architecture.as<DualEncoderConfig>();
  write_encoders(from, "clip", to);
  to["text_config"]["eos_token_id"] = dual.end_token.value_or(kEndOfFirstFiles);
  to["text_config"]["projection_dim"] = dual.width;
  to["vision_config"]["projection_dim"] = dual.width;
  to["projection_dim"] = dual.width;
}

void write_siglip(const Experiment& from, nlohmann::json& to) {
  const auto& dual = from.model.architecture.as<DualEncoderConfig>();
  write_encoders(from, "siglip", to);
  to["text_config"]["projection_size"] = dual.width;
}

/// The layers of an encoder, which have the same names in both families.
void add_layers(const std::string& ours, const std::string& theirs, int64_t n_layers, TensorRules& rules) {
  for (int64_t layer = 0; layer < n_layers; ++layer) {
    const auto here = fmt::format("{}.layers.{}.", ours, layer);
    const auto there = fmt::format("{}.encoder.layers.{}.", theirs, layer);
    for (const auto& [name, foreign] : {std::pair("self_attention.q", "self_attn.q_proj"),
                                        {"self_attention.k", "self_attn.k_proj"},
                                        {"self_attention.v", "self_attn.v_proj"},
                                        {"self_attention.out", "self_attn.out_proj"},
                                        {"residual.self_attention_norm", "layer_norm1"},
                                        {"residual.feed_forward_norm", "layer_norm2"},
                                        {"feed_forward.up", "mlp.fc1"},
                                        {"feed_forward.down", "mlp.fc2"}})
      rules.module(here + name, there + foreign);
  }
}

/// The rules that both families share. `stack`: the stack of the texts, "decoder" or "encoder".
TensorRules common_rules(const Experiment& experiment, const std::string& stack) {
  const auto& model = experiment.model;
  const auto image = picture_encoder(model);
  const auto& patches = image.architecture.as<VitConfig>();
  const int64_t channels = patches.n_channels.value_or(experiment.data.images.channels);
  TensorRules rules;
  const std::string text = "text_model.", vision = "vision_model.";
  rules.module("text.token_embedding", text + "embeddings.token_embedding");
  rules.module("text." + stack + "_embedder.position_embedding", text + "embeddings.position_embedding");
  add_layers("text." + stack, "text_model", model.n_layers, rules);
  rules.module("text." + stack + ".final_norm", text + "final_layer_norm");
  rules.tensor("image.embedder.positions", vision + "embeddings.position_embedding.weight");
  // A convolution there, a linear map of the numbers of a patch here.
  rules.tensor("image.embedder.projection.weight", vision + "embeddings.patch_embedding.weight",
               Move::reshaped, {image.d_model, channels, patches.patch_size, patches.patch_size});
  rules.tensor("image.embedder.projection.bias", vision + "embeddings.patch_embedding.bias");
  add_layers("image.encoder", "vision_model", image.n_layers, rules);
  rules.module("image.encoder.final_norm", vision + "post_layernorm");
  // Numbers that older versions saved: 0, 1, …
  rules.ignore(text + "embeddings.position_ids").ignore(vision + "embeddings.position_ids");
  return rules;
}

TensorRules clip_rules(const Experiment& experiment) {
  auto rules = common_rules(experiment, "decoder");
  const int64_t width = picture_encoder(experiment.model).d_model;
  rules.tensor("image.embedder.class_token", "vision_model.embeddings.class_embedding", Move::reshaped,
               {width});
  rules.module("image.embedder.norm", "vision_model.pre_layrnorm");
  rules.module("text_projection", "text_projection");
  rules.module("image_projection", "visual_projection");
  rules.tensor("log_scale", "logit_scale", Move::reshaped, {});
  return rules;
}

TensorRules siglip_rules(const Experiment& experiment) {
  auto rules = common_rules(experiment, "encoder");
  const std::string pooling = "image.pooling.", head = "vision_model.head.";
  const int64_t width = picture_encoder(experiment.model).d_model;
  rules.tensor(pooling + "query", head + "probe", Move::reshaped, {1, 1, width});
  for (const std::string part : {"weight", "bias"}) {
    const auto ours = pooling + "attention.";
    rules.rows({ours + "q." + part, ours + "k." + part, ours + "v." + part},
               head + "attention.in_proj_" + part);
  }
  rules.module(pooling + "attention.out", head + "attention.out_proj");
  rules.module(pooling + "norm", head + "layernorm");
  rules.module(pooling + "feed_forward.up", head + "mlp.fc1");
  rules.module(pooling + "feed_forward.down", head + "mlp.fc2");
  rules.module("text_projection", "text_model.head");
  rules.tensor("log_scale", "logit_scale").tensor("bias", "logit_bias");
  return rules;
}

}  // namespace

ForeignFamily clip_foreign() {
  return {.model_type = "clip",
          .doc = "CLIP (Radford et al. 2021): pictures and texts",
          .classes = {{"CLIPModel", "image_text_similarity"}},
          .read = read_clip,
          .write = write_clip,
          .rules = clip_rules};
}

ForeignFamily siglip_foreign() {
  return {.model_type = "siglip",
          .doc = "SigLIP (Zhai et al. 2023): pictures and texts",
          .classes = {{"SiglipModel", "image_text_similarity"}},
          .read = read_siglip,
          .write = write_siglip,
          .rules = siglip_rules};
}

}  // namespace zoo
