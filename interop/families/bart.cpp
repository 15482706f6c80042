// BART (Lewis et al. 2020) and Marian (Junczys-Dowmunt et al. 2018). BART differs from the 2017 Transformer
// in GELU, learned positions and a norm on the embeddings, Marian in the order of sines and cosines.

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "interop/families/common.h"
#include "interop/families/families.h"
#include "layers/attention/positions.h"
#include "tasks/text/text_classification.h"

namespace zoo {

void read_bart_keys(ForeignConfig& from, const BartDefaults& defaults, ModelConfig& to) {
  to.d_model = from.integer("d_model", defaults.d_model);
  to.n_layers = from.integer("encoder_layers", defaults.n_layers);
  to.n_decoder_layers = from.integer("decoder_layers", defaults.n_layers);
  to.n_heads = from.integer("encoder_attention_heads", defaults.n_heads);
  from.require("decoder_attention_heads", to.n_heads);
  to.d_ff = from.integer("encoder_ffn_dim", defaults.d_ff);
  from.require("decoder_ffn_dim", *to.d_ff);
  to.activation = read_activation(from, "activation_function", defaults.activation);
  to.dropout = from.number("dropout", defaults.dropout);
  to.attention_dropout = from.number("attention_dropout", defaults.attention_dropout);
  to.activation_dropout = from.number("activation_dropout", 0);
  from.ignore({"num_hidden_layers", "encoder_layerdrop", "decoder_layerdrop", "init_std"});
}

void write_bart_keys(const ModelConfig& from, nlohmann::json& to) {
  to["d_model"] = from.d_model;
  to["encoder_layers"] = to["num_hidden_layers"] = from.n_layers;
  to["decoder_layers"] = from.decoder_layers();
  to["encoder_attention_heads"] = to["decoder_attention_heads"] = from.n_heads;
  to["encoder_ffn_dim"] = to["decoder_ffn_dim"] = from.feed_forward_width();
  to["activation_function"] = foreign_name(from.activation);
  to["dropout"] = from.dropout;
  to["attention_dropout"] = from.attention_dropout;
  to["activation_dropout"] = from.activation_dropout;
  to["is_encoder_decoder"] = true;
}

void add_bart_layers(const std::string& side, TensorRules& rules) {
  const std::string ours = side + ".layers.{}.", theirs = "model." + side + ".layers.{}.";
  const auto attention = [&](const std::string& name, const std::string& their_name) {
    for (const std::string part : {"q", "k", "v"})
      rules.module(ours + name + "." + part, theirs + their_name + "." + part + "_proj");
    rules.module(ours + name + ".out", theirs + their_name + ".out_proj");
    rules.module(ours + "residual." + name + "_norm", theirs + their_name + "_layer_norm");
  };
  attention("self_attention", "self_attn");
  if (side == "decoder") attention("cross_attention", "encoder_attn");
  rules.module(ours + "feed_forward.up", theirs + "fc1");
  rules.module(ours + "feed_forward.down", theirs + "fc2");
  rules.module(ours + "residual.feed_forward_norm", theirs + "final_layer_norm");
}

namespace {

/// The first position of a token is row 2 of the table.
constexpr int64_t kBartOffset = 2;

bool scores_classes(const Experiment& experiment) { return experiment.task.type == "text_classification"; }

}  // namespace

void read_bart_like(ForeignConfig& from, const BartShape& shape, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder_decoder;
  model.vocab_size = from.integer("vocab_size", shape.vocab_size);
  read_bart_keys(from, shape.defaults, model);
  model.max_positions = from.integer("max_position_embeddings", 1024);
  model.norm_placement = shape.norms;
  model.scale_embeddings = from.flag("scale_embedding", shape.scales_embeddings);
  model.output_bias = true;
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  const bool is_pre = shape.norms == NormPlacement::pre;
  from.require("normalize_before", is_pre);
  from.require("add_final_layer_norm", is_pre);
  from.require("add_bias_logits", false);
  from.require("do_blenderbot_90_layernorm", false);
  from.ignore(
      {"classifier_dropout", "classif_dropout", "extra_pos_embeddings", "force_bos_token_to_be_generated"});
}

namespace {

void read_bart(ForeignConfig& from, Experiment& to) {
  read_bart_like(from, {}, to);
  auto& model = to.model;
  model.position = Position::learned;
  model.position_offset = kBartOffset;
  model.embedding_norm = true;
  from.require("normalize_embedding", true);
  from.require("static_position_embeddings", false);
  if (scores_classes(to))
    to.task = Selection("text_classification", TextClassificationConfig{.answer = ClassAnswer::head});
}

void read_marian(ForeignConfig& from, Experiment& to) {
  read_bart_like(from, {.vocab_size = 58101}, to);
  auto& model = to.model;
  model.position = Position::sinusoidal;
  model.sinusoid_layout = SinusoidLayout::half;
  from.require("normalize_embedding", false);
  from.require("static_position_embeddings", true);
  from.require("share_encoder_decoder_embeddings", true);
  from.require("decoder_vocab_size", *model.vocab_size);
}

}  // namespace

void write_bart(const Experiment& from, nlohmann::json& to) {
  write_bart_keys(from.model, to);
  to["max_position_embeddings"] = from.model.max_positions;
  to["scale_embedding"] = from.model.scale_embeddings;
}

namespace {

void write_marian(const Experiment& from, nlohmann::json& to) {
  write_bart(from, to);
  to["decoder_vocab_size"] = to["vocab_size"];
  to["share_encoder_decoder_embeddings"] = true;
}

/// The table that other versions saved. Rows before position 0 are those of earlier numbers, and the
/// padding's are zeros.
torch::Tensor sinusoidal_table(const ModelConfig& model) {
  constexpr double base = 10000;
  auto table =
      sinusoidal_positions(torch::arange(model.position_rows()), model.d_model, base, model.sinusoid_layout);
  if (model.position_offset > 0) table[model.position_offset - 1].zero_();
  return table;
}

}  // namespace

TensorRules bart_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  TensorRules rules;
  rules.prefix("model.").layers(std::max(model.n_layers, model.decoder_layers()));
  rules.module("token_embedding", "model.shared");
  for (const std::string side : {"encoder", "decoder"}) {
    add_bart_layers(side, rules);
    if (!model.stored_sinusoids)
      rules.module(side + "_embedder.position_embedding", "model." + side + ".embed_positions");
    rules.module(side + "_embedder.embedding_norm", "model." + side + ".layernorm_embedding");
    rules.module(side + ".final_norm", "model." + side + ".layer_norm");
    rules.copy("model." + side + ".embed_tokens.weight", "model.shared.weight");
    if (model.position == Position::sinusoidal) {
      const std::string name = "model." + side + ".embed_positions.weight";
      const auto values = [model] { return sinusoidal_table(model); };
      if (model.stored_sinusoids) {
        rules.tensor(side + "_embedder.position_embedding.table", name).absent(name, values);
        continue;
      }
      rules.computed(model.position_offset > 0 ? name + "s" : name, values);
    }
  }
  if (scores_classes(experiment)) {
    rules.module("head.pooler", "classification_head.dense");
    rules.module("head.classifier", "classification_head.out_proj");
    rules.ignore("final_logits_bias").ignore("lm_head.weight").ignore("model.*coder.version");
    return rules;
  }
  rules.tensor("head.output.weight", "lm_head.weight");
  if (model.output_bias) {
    rules.tensor("head.output.bias", "final_logits_bias", Move::reshaped, {1, model.vocab_size.value_or(0)});
    rules.absent("final_logits_bias", [n = model.vocab_size.value_or(0)] { return torch::zeros({1, n}); });
  }
  if (model.tie_embeddings) rules.tied("lm_head.weight", "model.shared.weight");
  // A number that fairseq saved.
  rules.ignore("model.*coder.version");
  return rules;
}

ForeignFamily bart_foreign() {
  return {.model_type = "bart",
          .doc = "BART (Lewis et al. 2020)",
          // A model without a head has the matrix of the embeddings for it.
          .classes = {{"BartForConditionalGeneration", "text_to_text"},
                      {"BartModel", "text_to_text"},
                      {"BartForSequenceClassification", "text_classification"}},
          .read = read_bart,
          .write = write_bart,
          .rules = bart_rules};
}

ForeignFamily marian_foreign() {
  return {.model_type = "marian",
          .doc = "Marian (Junczys-Dowmunt et al. 2018), such as OPUS-MT: translation between two languages",
          .classes = {{"MarianMTModel", "text_to_text"}, {"MarianModel", "text_to_text"}},
          .read = read_marian,
          .write = write_marian,
          .rules = bart_rules};
}

}  // namespace zoo
