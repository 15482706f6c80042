// The vision transformer (Dosovitskiy et al. 2021), and I-JEPA (Assran et al. 2023): the same without a class
// token, so that classes are predicted from the mean of the patches.

#include "models/families/vit.h"

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_transformer(ForeignConfig& from, ImagePooling pooling, Experiment& to) {
  auto& model = to.model;
  auto& images = to.data.images;
  images.size = from.integer("image_size", 224);
  images.channels = from.integer("num_channels", 3);
  model.architecture = Selection("vit", VitConfig{.patch_size = from.integer("patch_size", 16),
                                                  .image_size = images.size,
                                                  .n_channels = images.channels,
                                                  .pooling = pooling});
  read_bert_keys(from, 0, model);
  model.activation = read_activation(from, "hidden_act", "gelu");
  model.position = Position::learned;
  model.qkv_bias = from.flag("qkv_bias", true);
  from.ignore({"encoder_stride", "pooler_output_size", "pooler_act"});
}

void read_vit(ForeignConfig& from, Experiment& to) { read_transformer(from, ImagePooling::class_token, to); }
void read_ijepa(ForeignConfig& from, Experiment& to) { read_transformer(from, ImagePooling::mean, to); }

void write_transformer(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  const auto& vit = model.architecture.as<VitConfig>();
  to["image_size"] = vit.image_size.value_or(from.data.images.size);
  to["num_channels"] = vit.n_channels.value_or(from.data.images.channels);
  to["patch_size"] = vit.patch_size;
  write_bert_keys(model, to);
  to["hidden_act"] = foreign_name(model.activation);
  to["qkv_bias"] = model.qkv_bias.value_or(model.bias);
}

/// `body`: what the names of the encoder's tensors begin with.
TensorRules transformer_rules(const Experiment& experiment, const std::string& body) {
  const auto& model = experiment.model;
  const auto& vit = model.architecture.as<VitConfig>();
  const int64_t size = vit.image_size.value_or(experiment.data.images.size);
  const int64_t channels = vit.n_channels.value_or(experiment.data.images.channels);
  const bool has_class_token = vit.pooling == ImagePooling::class_token;
  const int64_t side = size / vit.patch_size, n_tokens = side * side + (has_class_token ? 1 : 0);
  const std::string ours = "encoder.layers.{}.", theirs = body + "encoder.layer.{}.";
  TensorRules rules;
  rules.prefix(body).layers(model.n_layers);
  if (has_class_token)
    rules.tensor("embedder.class_token", body + "embeddings.cls_token", Move::reshaped,
                 {1, 1, model.d_model});
  rules.tensor("embedder.positions", body + "embeddings.position_embeddings", Move::reshaped,
               {1, n_tokens, model.d_model});
  // A convolution there, a linear map of the numbers of a patch here.
  rules.tensor("embedder.projection.weight", body + "embeddings.patch_embeddings.projection.weight",
               Move::reshaped, {model.d_model, channels, vit.patch_size, vit.patch_size});
  rules.tensor("embedder.projection.bias", body + "embeddings.patch_embeddings.projection.bias");
  add_bert_maps(ours, theirs, "attention.attention.", rules);
  rules.module(ours + "residual.self_attention_norm", theirs + "layernorm_before");
  rules.module(ours + "residual.feed_forward_norm", theirs + "layernorm_after");
  rules.module("encoder.final_norm", body + "layernorm");
  rules.module("head.classifier", "classifier");
  rules.module("head.pooler", body + "pooler.dense");
  if (experiment.task.type == "image_classification") rules.ignore(body + "pooler.*");
  rules.live("encoder.layer.", "layers.");
  for (const std::string part : {"query", "key", "value"})
    rules.live("attention.attention." + part, "attention." + part.substr(0, 1) + "_proj");
  rules.live("attention.output.dense", "attention.o_proj");
  rules.live("intermediate.dense", "mlp.fc1").live("output.dense", "mlp.fc2");
  return rules;
}

TensorRules vit_rules(const Experiment& experiment) { return transformer_rules(experiment, "vit."); }
TensorRules ijepa_rules(const Experiment& experiment) { return transformer_rules(experiment, "ijepa."); }

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

}  // namespace zoo
