// The vision transformer (Dosovitskiy et al. 2021), I-JEPA (Assran et al. 2023): the same without a class
// token, so that classes are predicted from the mean of the patches, DeiT (Touvron et al. 2021): with a
// distillation token, DINOv2 (Oquab et al. 2023): with a scale of each sub-layer's outputs, and BEiT (Bao et
// al. 2022): with scores that depend on the distance of patches.

#include "models/families/vit.h"

#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

/// Sizes of pictures and patches. The rest of `vit` stays.
void read_patches(ForeignConfig& from, int64_t usual_patch_size, VitConfig vit, Experiment& to) {
  auto& images = to.data.images;
  images.size = from.integer("image_size", 224);
  images.channels = from.integer("num_channels", 3);
  vit.patch_size = from.integer("patch_size", usual_patch_size);
  vit.image_size = images.size;
  vit.n_channels = images.channels;
  to.model.architecture = Selection("vit", vit);
  to.model.position = Position::learned;
  to.model.qkv_bias = from.flag("qkv_bias", true);
}

void read_transformer(ForeignConfig& from, const VitConfig& vit, Experiment& to) {
  read_patches(from, 16, vit, to);
  read_bert_keys(from, 0, to.model);
  to.model.activation = read_activation(from, "hidden_act", "gelu");
  from.ignore({"encoder_stride", "pooler_output_size", "pooler_act"});
}

void read_vit(ForeignConfig& from, Experiment& to) { read_transformer(from, {}, to); }
void read_ijepa(ForeignConfig& from, Experiment& to) {
  read_transformer(from, {.pooling = ImagePooling::mean}, to);
}

constexpr std::string_view kDeitWithTeacher = "DeiTForImageClassificationWithTeacher";

void read_deit(ForeignConfig& from, Experiment& to) {
  const auto classes = from.texts("architectures");
  const bool has_teacher = !classes.empty() && classes.front() == kDeitWithTeacher;
  const auto pooling = has_teacher ? ImagePooling::class_and_distillation : ImagePooling::class_token;
  read_transformer(from, {.pooling = pooling, .distillation_token = true}, to);
}

/// The inner width of DINOv2's feed-forward network: a gated one has two thirds, in multiples of 8.
int64_t dinov2_width(int64_t d_model, double ratio, bool is_gated) {
  const auto width = static_cast<int64_t>(static_cast<double>(d_model) * ratio);
  if (!is_gated) return width;
  constexpr int64_t multiple = 8;
  const auto part = static_cast<int64_t>(static_cast<double>(width * 2) / 3);
  return (part + multiple - 1) / multiple * multiple;
}

void read_dinov2(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  read_patches(from, 14, {.pooling = ImagePooling::class_and_mean}, to);
  model.d_model = from.integer("hidden_size", 768);
  model.n_layers = from.integer("num_hidden_layers", 12);
  model.n_heads = from.integer("num_attention_heads", 12);
  model.norm_eps = from.number("layer_norm_eps", 1e-6);
  model.dropout = from.number("hidden_dropout_prob", 0);
  model.attention_dropout = from.number("attention_probs_dropout_prob", 0);
  model.layer_scale = from.number("layerscale_value", 1);
  const bool is_gated = from.flag("use_swiglu_ffn", false);
  const auto activation = read_activation(from, "hidden_act", "gelu");
  model.activation = is_gated ? Activation::swiglu : activation;
  model.d_ff = dinov2_width(model.d_model, from.number("mlp_ratio", 4), is_gated);
  // A model of features returns the vector of the class token, without a pooler.
  if (to.task.type == "image_features") model.pooler = false;
  // There the same probability in every layer, here one that grows.
  from.require("drop_path_rate", 0);
  // A vector for hidden patches, which only the authors' training needs, and the form of a backbone's maps.
  from.ignore({"use_mask_token", "apply_layernorm", "reshape_hidden_states", "out_features", "out_indices",
               "_out_features", "_out_indices", "stage_names"});
}

void read_beit(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  const bool pools_patches = from.flag("use_mean_pooling", true);
  read_patches(from, 16,
               {.pooling = pools_patches ? ImagePooling::patch_mean : ImagePooling::class_token,
                .pool_norm = pools_patches},
               to);
  read_bert_keys(from, 0, model);
  model.activation = read_activation(from, "hidden_act", "gelu");
  model.final_norm = !pools_patches;
  model.position = from.flag("use_absolute_position_embeddings", false) ? Position::learned : Position::none;
  const bool by_layer = from.flag("use_relative_position_bias", false);
  const bool shared = from.flag("use_shared_relative_position_bias", false);
  if (by_layer && shared)
    from.fail("use_shared_relative_position_bias", "beside use_relative_position_bias this is not supported");
  if (by_layer || shared) model.score_position = Position::grid;
  model.score_bias_by_layer = by_layer;
  if (const double scale = from.number("layer_scale_init_value", 0.1); scale > 0) model.layer_scale = scale;
  model.stochastic_depth = from.number("drop_path_rate", 0.1);
  model.qkv_bias = true;
  model.key_bias = false;
  if (to.task.type == "image_features") model.pooler = false;
  // They are for hidden patches, whose tokens the first training predicts, for segmentation, for backbones,
  // and for texts (AutoTrain).
  from.ignore({"tie_word_embeddings",
               "padding",
               "vocab_size",
               "use_mask_token",
               "pool_scales",
               "use_auxiliary_head",
               "auxiliary_loss_weight",
               "auxiliary_channels",
               "auxiliary_num_convs",
               "auxiliary_concat_input",
               "semantic_loss_ignore_index",
               "out_indices",
               "out_features",
               "_out_features",
               "_out_indices",
               "stage_names",
               "add_fpn",
               "reshape_hidden_states",
               "segmentation_indices",
               "encoder_stride"});
}

/// Sizes of pictures and patches, which every family has.
void write_sizes(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  const auto& vit = model.architecture.as<VitConfig>();
  to["image_size"] = vit.image_size.value_or(from.data.images.size);
  to["num_channels"] = vit.n_channels.value_or(from.data.images.channels);
  to["patch_size"] = vit.patch_size;
}

void write_patches(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  write_sizes(from, to);
  to["qkv_bias"] = model.qkv_bias.value_or(model.bias);
}

void write_transformer(const Experiment& from, nlohmann::json& to) {
  write_patches(from, to);
  write_bert_keys(from.model, to);
  to["hidden_act"] = foreign_name(from.model.activation);
}

void write_deit(const Experiment& from, nlohmann::json& to) {
  write_transformer(from, to);
  if (from.model.architecture.as<VitConfig>().pooling == ImagePooling::class_and_distillation)
    to["architectures"] = {kDeitWithTeacher};
}

void write_beit(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  write_sizes(from, to);
  write_bert_keys(model, to);
  to["hidden_act"] = foreign_name(model.activation);
  to["use_mean_pooling"] = model.architecture.as<VitConfig>().pooling == ImagePooling::patch_mean;
  to["use_absolute_position_embeddings"] = model.position == Position::learned;
  const bool has_bias = model.score_position == Position::grid;
  to["use_relative_position_bias"] = has_bias && model.score_bias_by_layer;
  to["use_shared_relative_position_bias"] = has_bias && !model.score_bias_by_layer;
  to["layer_scale_init_value"] = model.layer_scale.value_or(0);
  to["drop_path_rate"] = model.stochastic_depth;
  to["use_mask_token"] = false;
}

void write_dinov2(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  write_patches(from, to);
  to["hidden_size"] = model.d_model;
  to["num_hidden_layers"] = model.n_layers;
  to["num_attention_heads"] = model.n_heads;
  to["layer_norm_eps"] = model.norm_eps;
  to["hidden_dropout_prob"] = model.dropout;
  to["attention_probs_dropout_prob"] = model.attention_dropout;
  if (!model.layer_scale) throw CheckpointError("DINOv2 has a model.layer_scale");
  to["layerscale_value"] = *model.layer_scale;
  const bool is_gated = model.activation == Activation::swiglu;
  to["use_swiglu_ffn"] = is_gated;
  to["hidden_act"] = is_gated ? "gelu" : foreign_name(model.activation);
  // A whole number. If none gives this width, what is read again differs.
  int64_t ratio = 1;
  while (dinov2_width(model.d_model, static_cast<double>(ratio), is_gated) < model.feed_forward_width())
    ++ratio;
  to["mlp_ratio"] = ratio;
  to["use_mask_token"] = false;
}

/// What stands before and after the layers. `body`: what the names of the encoder's tensors begin with.
TensorRules picture_rules(const Experiment& experiment, const std::string& body) {
  const auto& model = experiment.model;
  const auto& vit = model.architecture.as<VitConfig>();
  const int64_t size = vit.image_size.value_or(experiment.data.images.size);
  const int64_t channels = vit.n_channels.value_or(experiment.data.images.channels);
  const int64_t side = size / vit.patch_size;
  const int64_t n_tokens = side * side + vit.n_before();
  TensorRules rules;
  rules.prefix(body).layers(model.n_layers);
  if (vit.has_class_token())
    rules.tensor("embedder.class_token", body + "embeddings.cls_token", Move::reshaped,
                 {1, 1, model.d_model});
  if (vit.distillation_token)
    rules.tensor("embedder.distillation_token", body + "embeddings.distillation_token", Move::reshaped,
                 {1, 1, model.d_model});
  rules.tensor("embedder.positions", body + "embeddings.position_embeddings", Move::reshaped,
               {1, n_tokens, model.d_model});
  // A convolution there, a linear map of the numbers of a patch here.
  rules.tensor("embedder.projection.weight", body + "embeddings.patch_embeddings.projection.weight",
               Move::reshaped, {model.d_model, channels, vit.patch_size, vit.patch_size});
  rules.tensor("embedder.projection.bias", body + "embeddings.patch_embeddings.projection.bias");
  rules.module("encoder.final_norm", body + "layernorm");
  const bool has_teacher = vit.pooling == ImagePooling::class_and_distillation;
  rules.module("head.classifier", has_teacher ? "cls_classifier" : "classifier");
  rules.module("head.distillation_classifier", "distillation_classifier");
  // What hides patches in the training of others.
  rules.ignore(body + "embeddings.mask_token");
  for (const std::string part : {"query", "key", "value"})
    rules.live("attention.attention." + part, "attention." + part.substr(0, 1) + "_proj");
  rules.live("attention.output.dense", "attention.o_proj");
  return rules;
}

TensorRules transformer_rules(const Experiment& experiment, const std::string& body) {
  const std::string ours = "encoder.layers.{}.", theirs = body + "encoder.layer.{}.";
  auto rules = picture_rules(experiment, body);
  add_bert_maps(ours, theirs, "attention.attention.", rules);
  rules.module(ours + "residual.self_attention_norm", theirs + "layernorm_before");
  rules.module(ours + "residual.feed_forward_norm", theirs + "layernorm_after");
  rules.module("head.pooler", body + "pooler.dense");
  if (experiment.task.type == "image_classification") rules.ignore(body + "pooler.*");
  rules.live("encoder.layer.", "layers.");
  rules.live("intermediate.dense", "mlp.fc1").live("output.dense", "mlp.fc2");
  return rules;
}

TensorRules vit_rules(const Experiment& experiment) { return transformer_rules(experiment, "vit."); }
TensorRules ijepa_rules(const Experiment& experiment) { return transformer_rules(experiment, "ijepa."); }
TensorRules deit_rules(const Experiment& experiment) { return transformer_rules(experiment, "deit."); }

TensorRules beit_rules(const Experiment& experiment) {
  const std::string body = "beit.", ours = "encoder.layers.{}.", theirs = body + "encoder.layer.{}.";
  auto rules = picture_rules(experiment, body);
  add_bert_maps(ours, theirs, "attention.attention.", rules);
  rules.module(ours + "residual.self_attention_norm", theirs + "layernorm_before");
  rules.module(ours + "residual.feed_forward_norm", theirs + "layernorm_after");
  rules.tensor(ours + "residual.self_attention_scale", theirs + "lambda_1");
  rules.tensor(ours + "residual.feed_forward_scale", theirs + "lambda_2");
  const std::string table = "relative_position_bias.relative_position_bias_table";
  rules.tensor("encoder.position_biases.{}.numbers.weight", theirs + "attention.attention." + table);
  rules.tensor("encoder.position_bias.numbers.weight", body + "encoder." + table);
  rules.module("pool_norm", body + "pooler.layernorm");
  // It follows from the size of the picture.
  rules.ignore("*relative_position_index");
  rules.live("encoder.layer.", "layers.");
  rules.live("intermediate.dense", "mlp.fc1").live("output.dense", "mlp.fc2");
  return rules;
}

TensorRules dinov2_rules(const Experiment& experiment) {
  const std::string ours = "encoder.layers.{}.", theirs = "dinov2.encoder.layer.{}.";
  auto rules = picture_rules(experiment, "dinov2.");
  for (const auto& [here, there] : {std::pair("q", "query"), {"k", "key"}, {"v", "value"}})
    rules.module(ours + "self_attention." + here, theirs + "attention.attention." + there);
  rules.module(ours + "self_attention.out", theirs + "attention.output.dense");
  rules.module(ours + "residual.self_attention_norm", theirs + "norm1");
  rules.module(ours + "residual.feed_forward_norm", theirs + "norm2");
  rules.tensor(ours + "residual.self_attention_scale", theirs + "layer_scale1.lambda1");
  rules.tensor(ours + "residual.feed_forward_scale", theirs + "layer_scale2.lambda1");
  if (experiment.model.activation == Activation::swiglu) {
    add_stacked_gate(ours + "feed_forward.", theirs + "mlp.weights_in", rules);
    rules.module(ours + "feed_forward.down", theirs + "mlp.weights_out");
    rules.live("mlp.weights_out", "mlp.down_proj");
  } else {
    rules.module(ours + "feed_forward.up", theirs + "mlp.fc1");
    rules.module(ours + "feed_forward.down", theirs + "mlp.fc2");
  }
  return rules;
}

}  // namespace

ForeignFamily vit_foreign() {
  return {.model_type = "vit",
          .doc = "ViT (Dosovitskiy et al. 2021)",
          .classes = {{"ViTForImageClassification", "image_classification"}, {"ViTModel", "image_features"}},
          .read = read_vit,
          .write = write_transformer,
          .rules = vit_rules};
}

ForeignFamily ijepa_foreign() {
  return {
      .model_type = "ijepa",
      .doc = "I-JEPA (Assran et al. 2023): ViT without a class token",
      .classes = {{"IJepaForImageClassification", "image_classification"}, {"IJepaModel", "image_features"}},
      .read = read_ijepa,
      .write = write_transformer,
      .rules = ijepa_rules};
}

ForeignFamily deit_foreign() {
  return {.model_type = "deit",
          .doc = "DeiT (Touvron et al. 2021): ViT with a distillation token",
          .classes = {{"DeiTForImageClassification", "image_classification"},
                      {"DeiTForImageClassificationWithTeacher", "image_classification"},
                      {"DeiTModel", "image_features"}},
          .read = read_deit,
          .write = write_deit,
          .rules = deit_rules};
}

ForeignFamily beit_foreign() {
  return {
      .model_type = "beit",
      .doc = "BEiT (Bao et al. 2022): ViT with scores by the distance of patches",
      .classes = {{"BeitForImageClassification", "image_classification"}, {"BeitModel", "image_features"}},
      .read = read_beit,
      .write = write_beit,
      .rules = beit_rules};
}

ForeignFamily dinov2_foreign() {
  return {.model_type = "dinov2",
          .doc = "DINOv2 (Oquab et al. 2023): ViT with layer scale",
          .classes = {{"Dinov2ForImageClassification", "image_classification"},
                      {"Dinov2Model", "image_features"}},
          .read = read_dinov2,
          .write = write_dinov2,
          .rules = dinov2_rules};
}

}  // namespace zoo
