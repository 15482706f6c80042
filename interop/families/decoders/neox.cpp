// GPT-NeoX (Black et al. 2022), whose shape Pythia has (Biderman et al. 2023), and GPT-J (Wang & Komatsuzaki
// 2021): attention and feed-forward network read the same vectors, and a part of each head is turned.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_gpt_neox(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size", 50432);
  model.d_model = from.integer("hidden_size", 6144);
  model.d_ff = from.integer("intermediate_size", 24576);
  model.n_layers = from.integer("num_hidden_layers", 44);
  model.n_heads = from.integer("num_attention_heads", 64);
  model.max_positions = from.integer("max_position_embeddings", 2048);
  model.activation = read_activation(from, "hidden_act", "gelu");
  model.norm_eps = from.number("layer_norm_eps", 1e-5);
  model.norm_placement =
      from.flag("use_parallel_residual", true) ? NormPlacement::parallel_norms : NormPlacement::pre;
  model.dropout = from.number("hidden_dropout", 0);
  model.attention_dropout = from.number("attention_dropout", 0);
  model.qkv_bias = model.out_bias = from.flag("attention_bias", true);
  model.tie_embeddings = from.flag("tie_word_embeddings", false);
  model.projection = Projection::fused;
  model.classifier_bias = false;
  read_rotary(from, {.fraction = 0.25, .theta_key = "rotary_emb_base", .fraction_key = "rotary_pct"}, model);
  // transformers 4 says both twice.
  from.require("rope_theta", model.rotary.theta);
  from.require("partial_rotary_factor", model.rotary.fraction);
  from.ignore({"classifier_dropout"});  // of a head for each token
}

void write_gpt_neox(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["hidden_size"] = model.d_model;
  to["intermediate_size"] = model.feed_forward_width();
  to["num_hidden_layers"] = model.n_layers;
  to["num_attention_heads"] = model.n_heads;
  to["max_position_embeddings"] = model.max_positions;
  to["hidden_act"] = foreign_name(model.activation);
  to["layer_norm_eps"] = model.norm_eps;
  to["use_parallel_residual"] = model.norm_placement == NormPlacement::parallel_norms;
  to["hidden_dropout"] = model.dropout;
  to["attention_dropout"] = model.attention_dropout;
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  write_rotary(model, to);
  to.erase("rope_theta");
  to["rotary_emb_base"] = model.rotary.theta;
  to["rotary_pct"] = model.rotary.fraction;
}

TensorRules gpt_neox_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string ours = "decoder.layers.{}.", theirs = "gpt_neox.layers.{}.";
  TensorRules rules;
  rules.prefix("gpt_neox.").layers(model.n_layers);
  rules.module("token_embedding", "gpt_neox.embed_in");
  rules.module(ours + "residual.self_attention_norm", theirs + "input_layernorm");
  add_stacked_attention(model, ours + "self_attention.", theirs + "attention.query_key_value", model.n_heads,
                        rules);
  rules.module(ours + "self_attention.out", theirs + "attention.dense");
  rules.module(ours + "residual.feed_forward_norm", theirs + "post_attention_layernorm");
  rules.module(ours + "feed_forward.up", theirs + "mlp.dense_h_to_4h");
  rules.module(ours + "feed_forward.down", theirs + "mlp.dense_4h_to_h");
  rules.module("decoder.final_norm", "gpt_neox.final_layer_norm");
  add_decoder_heads(experiment, "embed_out", "gpt_neox.embed_in", rules);
  rules.live("embed_out.", "lm_head.");
  // Masks and angles that older versions saved.
  for (const std::string name : {"bias", "masked_bias", "rotary_emb.inv_freq"})
    rules.ignore("gpt_neox.layers.*.attention." + name);
  return rules;
}

void read_gptj(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size", 50400);
  model.d_model = from.integer("n_embd", 4096);
  model.n_layers = from.integer("n_layer", 28);
  model.n_heads = from.integer("n_head", 16);
  model.d_ff = from.optional_integer("n_inner");
  model.max_positions = from.integer("n_positions", 2048);
  model.activation = read_activation(from, "activation_function", "gelu_new");
  model.norm_eps = from.number("layer_norm_epsilon", 1e-5);
  model.norm_placement = NormPlacement::parallel;
  model.dropout = from.number("resid_pdrop", 0);
  model.attention_dropout = from.number("attn_pdrop", 0);
  model.qkv_bias = model.out_bias = false;
  model.output_bias = true;
  model.classifier_bias = false;
  model.tie_embeddings = from.flag("tie_word_embeddings", false);
  model.position = Position::rotary;
  model.rotary.layout = RotaryLayout::interleaved;
  const bool is_null = from.json().contains("rotary_dim") && !from.has("rotary_dim");
  const int64_t width = is_null ? model.head_width() : from.integer("rotary_dim", 64);
  from.ignore({"rotary_dim"});
  model.rotary.fraction = static_cast<double>(width) / static_cast<double>(model.head_width());
  from.require("rotary", true);
  from.require("scale_attn_weights", true);
  from.ignore({"embd_pdrop", "n_ctx", "summary_type", "summary_use_proj", "summary_activation",
               "summary_proj_to_labels", "summary_first_dropout"});
}

void write_gptj(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["n_embd"] = model.d_model;
  to["n_layer"] = model.n_layers;
  to["n_head"] = model.n_heads;
  to["n_inner"] = model.feed_forward_width();
  to["n_positions"] = model.max_positions;
  to["activation_function"] = foreign_name(model.activation);
  to["layer_norm_epsilon"] = model.norm_eps;
  to["resid_pdrop"] = to["embd_pdrop"] = model.dropout;
  to["attn_pdrop"] = model.attention_dropout;
  to["rotary_dim"] = model.rotary_width();
}

TensorRules gptj_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string ours = "decoder.layers.{}.", theirs = "transformer.h.{}.";
  const int64_t rows = model.n_heads * model.head_width();
  TensorRules rules;
  rules.prefix("transformer.").layers(model.n_layers);
  rules.module("token_embedding", "transformer.wte");
  rules.module(ours + "residual.norm", theirs + "ln_1");
  for (const std::string name : {"q", "k", "v"})
    rules.module(ours + "self_attention." + name, theirs + "attn." + name + "_proj");
  rules.modules({ours + "self_attention.qkv"},
                {theirs + "attn.q_proj", theirs + "attn.k_proj", theirs + "attn.v_proj"}, {rows, rows, rows});
  rules.module(ours + "self_attention.out", theirs + "attn.out_proj");
  rules.module(ours + "feed_forward.up", theirs + "mlp.fc_in");
  rules.module(ours + "feed_forward.down", theirs + "mlp.fc_out");
  rules.module("decoder.final_norm", "transformer.ln_f");
  add_decoder_heads(experiment, "lm_head", "transformer.wte", rules);
  // Masks and angles that older versions saved.
  for (const std::string name : {"bias", "masked_bias", "embed_positions"})
    rules.ignore("transformer.h.*.attn." + name);
  return rules;
}

}  // namespace

ForeignFamily gpt_neox_foreign() {
  return {.model_type = "gpt_neox",
          .doc = "GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023)",
          .classes = {{"GPTNeoXForCausalLM", "language_modeling"},
                      {"GPTNeoXForSequenceClassification", "text_classification"},
                      {"GPTNeoXModel", "text_features"}},
          .read = read_gpt_neox,
          .write = write_gpt_neox,
          .rules = gpt_neox_rules};
}

ForeignFamily gptj_foreign() {
  return {.model_type = "gptj",
          .doc = "GPT-J (Wang & Komatsuzaki 2021): one norm for attention and feed-forward network",
          .classes = {{"GPTJForCausalLM", "language_modeling"},
                      {"GPTJForSequenceClassification", "text_classification"},
                      {"GPTJModel", "text_features"}},
          .read = read_gptj,
          .write = write_gptj,
          .rules = gptj_rules};
}

}  // namespace zoo
