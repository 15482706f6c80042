// OPT (Zhang et al. 2022), and Galactica (Taylor et al. 2022), which has no biases in its linear maps.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

constexpr int64_t kPositionOffset = 2;  // rows of the table of positions that nothing uses

void read_opt(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size", 50272);
  model.d_model = from.integer("hidden_size", 768);
  model.d_ff = from.integer("ffn_dim", 3072);
  model.n_layers = from.integer("num_hidden_layers", 12);
  model.n_heads = from.integer("num_attention_heads", 12);
  model.max_positions = from.integer("max_position_embeddings", 2048);
  model.position = Position::learned;
  model.position_offset = kPositionOffset;
  model.activation = read_activation(from, "activation_function", "relu");
  model.qkv_bias = model.out_bias = model.ff_bias = from.flag("enable_bias", true);
  model.dropout = from.number("dropout", 0.1);
  model.attention_dropout = from.number("attention_dropout", 0);
  model.activation_dropout = from.number("activation_dropout", 0);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.classifier_bias = false;
  model.norm =
      from.flag("layer_norm_elementwise_affine", true) ? NormKind::layer_norm : NormKind::layer_norm_plain;
  model.norm_placement = from.flag("do_layer_norm_before", true) ? NormPlacement::pre : NormPlacement::post;
  from.require("_remove_final_layer_norm", false);
  if (const int64_t width = from.integer("word_embed_proj_dim", model.d_model); width != model.d_model) {
    // Classifiers and vectors have the map behind the layers, too, which has a place only before tokens here.
    if (to.task.type != "language_modeling") from.require("word_embed_proj_dim", model.d_model);
    model.embedding_width = width;
    model.embedding_map = EmbeddingMap::first;
  }
  from.ignore({"layerdrop", "init_std"});
}

void write_opt(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["hidden_size"] = model.d_model;
  to["word_embed_proj_dim"] = model.table_width();
  to["ffn_dim"] = model.feed_forward_width();
  to["num_hidden_layers"] = model.n_layers;
  to["num_attention_heads"] = model.n_heads;
  to["max_position_embeddings"] = model.max_positions;
  to["activation_function"] = foreign_name(model.activation);
  to["enable_bias"] = model.qkv_bias.value_or(model.bias);
  to["dropout"] = model.dropout;
  to["attention_dropout"] = model.attention_dropout;
  if (model.activation_dropout > 0) to["activation_dropout"] = model.activation_dropout;
  to["layer_norm_elementwise_affine"] = model.norm != NormKind::layer_norm_plain;
  to["do_layer_norm_before"] = model.norm_placement != NormPlacement::post;
}

TensorRules opt_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string ours = "decoder.layers.{}.", theirs = "model.decoder.layers.{}.";
  const int64_t rows = model.n_heads * model.head_width();
  TensorRules rules;
  rules.prefix("model.").layers(model.n_layers);
  rules.module("token_embedding", "model.decoder.embed_tokens");
  rules.module("decoder_embedder.position_embedding", "model.decoder.embed_positions");
  rules.module("decoder_embedder.embedding_map", "model.decoder.project_in");
  rules.module("head.transform", "model.decoder.project_out");
  rules.module(ours + "residual.self_attention_norm", theirs + "self_attn_layer_norm");
  for (const std::string name : {"q", "k", "v"})
    rules.module(ours + "self_attention." + name, theirs + "self_attn." + name + "_proj");
  rules.modules({ours + "self_attention.qkv"},
                {theirs + "self_attn.q_proj", theirs + "self_attn.k_proj", theirs + "self_attn.v_proj"},
                {rows, rows, rows});
  rules.module(ours + "self_attention.out", theirs + "self_attn.out_proj");
  rules.module(ours + "residual.feed_forward_norm", theirs + "final_layer_norm");
  rules.module(ours + "feed_forward.up", theirs + "fc1");
  rules.module(ours + "feed_forward.down", theirs + "fc2");
  rules.module("decoder.final_norm", "model.decoder.final_layer_norm");
  add_decoder_heads(experiment, "lm_head", "model.decoder.embed_tokens", rules);
  return rules;
}

}  // namespace

ForeignFamily opt_foreign() {
  return {.model_type = "opt",
          .doc = "OPT (Zhang et al. 2022) and Galactica (Taylor et al. 2022)",
          .classes = {{"OPTForCausalLM", "language_modeling"},
                      {"OPTForSequenceClassification", "text_classification"},
                      {"OPTModel", "text_features"}},
          .read = read_opt,
          .write = write_opt,
          .rules = opt_rules};
}

}  // namespace zoo
