// BART (Lewis et al. 2020). It differs from the 2017 Transformer in GELU, learned positions and a norm on the
// embeddings.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

/// The first position of a token is row 2 of the table.
constexpr int64_t kBartOffset = 2;

void read_bart(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder_decoder;
  model.vocab_size = from.integer("vocab_size", 50265);
  model.d_model = from.integer("d_model", 1024);
  model.n_layers = from.integer("encoder_layers", 12);
  model.n_decoder_layers = from.integer("decoder_layers", 12);
  model.n_heads = from.integer("encoder_attention_heads", 16);
  from.require("decoder_attention_heads", model.n_heads);
  model.d_ff = from.integer("encoder_ffn_dim", 4096);
  from.require("decoder_ffn_dim", *model.d_ff);
  model.max_positions = from.integer("max_position_embeddings", 1024);
  model.position = Position::learned;
  model.position_offset = kBartOffset;
  model.activation = read_activation(from, "activation_function", "gelu");
  model.norm_placement = NormPlacement::post;
  model.embedding_norm = true;
  model.scale_embeddings = from.flag("scale_embedding", false);
  model.output_bias = true;
  model.dropout = from.number("dropout", 0.1);
  model.attention_dropout = from.number("attention_dropout", 0);
  model.activation_dropout = from.number("activation_dropout", 0);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  from.require("normalize_before", false);
  from.require("normalize_embedding", true);
  from.require("add_final_layer_norm", false);
  from.require("add_bias_logits", false);
  from.require("static_position_embeddings", false);
  from.ignore({"encoder_layerdrop", "decoder_layerdrop", "num_hidden_layers", "classifier_dropout",
               "init_std", "classif_dropout", "extra_pos_embeddings", "force_bos_token_to_be_generated"});
}

void write_bart(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["d_model"] = model.d_model;
  to["encoder_layers"] = to["num_hidden_layers"] = model.n_layers;
  to["decoder_layers"] = model.decoder_layers();
  to["encoder_attention_heads"] = to["decoder_attention_heads"] = model.n_heads;
  to["encoder_ffn_dim"] = to["decoder_ffn_dim"] = model.feed_forward_width();
  to["max_position_embeddings"] = model.max_positions;
  to["activation_function"] = foreign_name(model.activation);
  to["scale_embedding"] = model.scale_embeddings;
  to["dropout"] = model.dropout;
  to["attention_dropout"] = model.attention_dropout;
  to["activation_dropout"] = model.activation_dropout;
  to["is_encoder_decoder"] = true;
}

TensorRules bart_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  TensorRules rules;
  rules.layers(std::max(model.n_layers, model.decoder_layers()));
  rules.module("token_embedding", "model.shared");
  for (const std::string side : {"encoder", "decoder"}) {
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
    rules.module(side + "_embedder.position_embedding", "model." + side + ".embed_positions");
    rules.module(side + "_embedder.embedding_norm", "model." + side + ".layernorm_embedding");
    rules.copy("model." + side + ".embed_tokens.weight", "model.shared.weight");
  }
  rules.tensor("head.output.bias", "final_logits_bias", Move::reshaped, {1, model.vocab_size.value_or(0)});
  rules.tensor("head.output.weight", "lm_head.weight");
  if (model.tie_embeddings) rules.copy("lm_head.weight", "model.shared.weight");
  return rules;
}

}  // namespace

ForeignFamily bart_foreign() {
  return {.model_type = "bart",
          .doc = "BART (Lewis et al. 2020)",
          .classes = {{"BartForConditionalGeneration", "text_to_text"}},
          .read = read_bart,
          .write = write_bart,
          .rules = bart_rules};
}

}  // namespace zoo
