// Llama (Touvron et al. 2023) and its relatives: Mistral (Jiang et al. 2023), Qwen2 (Yang et al. 2024) and
// Qwen3 (Yang et al. 2025). The same names; they differ in biases, windows and norms of queries and keys.

#include "interop/families/decoders/llama.h"

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {

void read_llama_like(ForeignConfig& from, const LlamaDefaults& defaults, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size", defaults.vocab_size);
  model.d_model = from.integer("hidden_size", defaults.d_model);
  model.d_ff = from.integer("intermediate_size", defaults.d_ff);
  model.n_layers = from.integer("num_hidden_layers", defaults.n_layers);
  constexpr int64_t most_layers = 1 << 12;  // as model.n_layers; windows are a list of them
  if (model.n_layers < 1 || model.n_layers > most_layers)
    from.fail("num_hidden_layers", "must be from 1 to 4096");
  model.n_heads = from.integer("num_attention_heads", defaults.n_heads);
  model.n_kv_heads = from.has("num_key_value_heads") || defaults.n_kv_heads == 0
                         ? from.optional_integer("num_key_value_heads")
                         : defaults.n_kv_heads;
  model.max_positions = from.integer("max_position_embeddings", defaults.max_positions);
  model.norm = NormKind::rms_norm;
  model.norm_eps = from.number("rms_norm_eps", 1e-6);
  model.attention_dropout = from.number("attention_dropout", 0);
  model.tie_embeddings = from.flag("tie_word_embeddings", defaults.tie_embeddings);
  model.bias = false;
  model.classifier_bias = false;
  model.dropout = 0;
  read_rotary(from, {.theta = defaults.rotary_theta, .fraction = defaults.rotary_fraction}, model);
}

void write_llama_like(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["hidden_size"] = model.d_model;
  to["intermediate_size"] = model.feed_forward_width();
  to["num_hidden_layers"] = model.n_layers;
  to["num_attention_heads"] = model.n_heads;
  to["num_key_value_heads"] = model.kv_heads();
  to["max_position_embeddings"] = model.max_positions;
  to["rms_norm_eps"] = model.norm_eps;
  to["attention_dropout"] = model.attention_dropout;
  write_rotary(model, to);
}

void add_llama_frame(const Experiment& experiment, TensorRules& rules, const std::string& final_norm) {
  const auto& model = experiment.model;
  rules.prefix("model.").layers(model.n_layers);
  rules.module("token_embedding", "model.embed_tokens");
  rules.module("decoder.layers.{}.residual.self_attention_norm", "model.layers.{}.input_layernorm");
  rules.module("decoder.final_norm", final_norm);
  rules.module("head.output", "lm_head");
  rules.module("head.classifier", "score");
  if (model.tie_embeddings) rules.tied("lm_head.weight", "model.embed_tokens.weight");
  // A classifier or a body that was made from a model with a head for tokens.
  if (experiment.task.type != "language_modeling") rules.ignore("lm_head.*");
  // Tables that older versions saved; they follow from the configuration.
  rules.ignore("model.layers.*.self_attn.rotary_emb.inv_freq").ignore("model.rotary_emb.inv_freq");
}

void add_llama_attention(const ModelConfig& model, TensorRules& rules, const std::string& out) {
  const int64_t q_rows = model.n_heads * model.head_width(), kv_rows = model.kv_heads() * model.head_width();
  const std::string ours = "decoder.layers.{}.self_attention.", theirs = "model.layers.{}.self_attn.";
  for (const std::string name : {"q", "k", "v"}) rules.module(ours + name, theirs + name + "_proj");
  rules.modules({ours + "qkv"}, {theirs + "q_proj", theirs + "k_proj", theirs + "v_proj"},
                {q_rows, kv_rows, kv_rows});
  rules.module(ours + "out", theirs + out);
}

void add_llama_feed_forward(const ModelConfig& model, TensorRules& rules) {
  const int64_t d_ff = model.feed_forward_width();
  const std::string ours = "decoder.layers.{}.feed_forward.", theirs = "model.layers.{}.mlp.";
  for (const std::string name : {"gate", "up", "down"}) rules.module(ours + name, theirs + name + "_proj");
  rules.modules({ours + "gate_up"}, {theirs + "gate_proj", theirs + "up_proj"}, {d_ff, d_ff});
}

TensorRules llama_like_rules(const Experiment& experiment) {
  const std::string ours = "decoder.layers.{}.", theirs = "model.layers.{}.";
  TensorRules rules;
  add_llama_frame(experiment, rules);
  add_llama_attention(experiment.model, rules);
  add_llama_feed_forward(experiment.model, rules);
  rules.module(ours + "self_attention.q_norm", theirs + "self_attn.q_norm");
  rules.module(ours + "self_attention.k_norm", theirs + "self_attn.k_norm");
  return rules;
}

void read_silu_decoder(ForeignConfig& from, const LlamaDefaults& defaults, Experiment& to) {
  read_llama_like(from, defaults, to);
  to.model.activation = read_gated_activation(from, "hidden_act", "silu");
}

void write_silu_decoder(const Experiment& from, nlohmann::json& to) {
  write_llama_like(from, to);
  to["hidden_act"] = foreign_name(from.model.activation);
}

TensorRules llama_rules(const Experiment& experiment) {
  auto rules = llama_like_rules(experiment);
  rules.module("decoder.layers.{}.residual.feed_forward_norm", "model.layers.{}.post_attention_layernorm");
  return rules;
}

namespace {

void read_llama(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from, {}, to);
  to.model.head_dim = from.optional_integer("head_dim");
  const bool has_bias = from.flag("attention_bias", false);
  to.model.qkv_bias = to.model.out_bias = has_bias;
  to.model.ff_bias = from.flag("mlp_bias", false);
  from.require("rope_interleaved", false);
  // They say how an older program divided its work, or are remarks.
  from.ignore({"pretraining_tp", "is_llama_config", "max_sequence_length"});
}

void read_mistral(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from, {.max_positions = 4096 * 32, .n_kv_heads = 8, .d_ff = 14336}, to);
  to.model.head_dim = from.optional_integer("head_dim");
  // A file without the key has the default, and null says that there is no window.
  const bool is_null = from.json().contains("sliding_window") && !from.has("sliding_window");
  const auto window = is_null ? std::nullopt : std::optional(from.integer("sliding_window", 4096));
  from.ignore({"sliding_window"});
  if (window) set_windows({true}, *window, to.model);
}

/// Qwen's windows: layer_types, or else the layers from max_window_layers on.
void read_qwen_windows(ForeignConfig& from, Experiment& to) {
  const bool uses_windows = from.flag("use_sliding_window", false);
  const auto size = from.optional_integer("sliding_window");
  const auto first = from.integer("max_window_layers", 28);
  std::vector<bool> rule;
  for (int64_t layer = 0; layer < to.model.n_layers; ++layer)
    rule.push_back(uses_windows && size && layer >= first);
  const auto is_window = read_windows(from, rule);
  if (std::ranges::find(is_window, true) == is_window.end()) return;
  if (!size) from.fail("sliding_window", "is missing for the layers that have a window");
  set_windows(is_window, *size, to.model);
}

void read_qwen2(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from, {.vocab_size = 151936, .max_positions = 32768, .n_kv_heads = 32, .d_ff = 22016},
                    to);
  to.model.qkv_bias = true;
  from.require("use_mrope", false);  // positions in three dimensions, which are for pictures
  read_qwen_windows(from, to);
}

void read_qwen3(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from, {.vocab_size = 151936, .max_positions = 32768, .n_kv_heads = 32, .d_ff = 22016},
                    to);
  to.model.head_dim = from.integer("head_dim", 128);
  to.model.qk_norm = true;
  to.model.qkv_bias = to.model.out_bias = from.flag("attention_bias", false);
  from.require("use_mrope", false);
  read_qwen_windows(from, to);
}

void read_olmo2(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from, {.vocab_size = 50304}, to);
  to.model.norm_eps = from.number("rms_norm_eps", 1e-5);
  to.model.norm_placement = NormPlacement::residual_post;
  to.model.qk_norm = true;
  to.model.qk_norm_width = QkNormWidth::all_heads;
  to.model.qkv_bias = to.model.out_bias = from.flag("attention_bias", false);
}

void write_olmo2(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  to["attention_bias"] = from.model.qkv_bias.value_or(from.model.bias);
}

TensorRules olmo2_rules(const Experiment& experiment) {
  auto rules = llama_like_rules(experiment);
  const std::string ours = "decoder.layers.{}.residual.", theirs = "model.layers.{}.";
  rules.module(ours + "self_attention_output_norm", theirs + "post_attention_layernorm");
  rules.module(ours + "feed_forward_output_norm", theirs + "post_feedforward_layernorm");
  return rules;
}

void write_llama(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  to["head_dim"] = from.model.head_width();
  to["attention_bias"] = from.model.qkv_bias.value_or(from.model.bias);
  to["mlp_bias"] = from.model.ff_bias.value_or(from.model.bias);
}

void write_mistral(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  to["head_dim"] = from.model.head_width();
  const auto window = window_of(from.model);
  to["sliding_window"] = window ? nlohmann::json(*window) : nlohmann::json(nullptr);
}

void write_qwen_windows(const Experiment& from, nlohmann::json& to) {
  const auto size = window_of(from.model);
  to["layer_types"] = layer_types_of(from.model);
  to["use_sliding_window"] = size.has_value();
  to["sliding_window"] = size ? nlohmann::json(*size) : nlohmann::json(nullptr);
}

void write_qwen2(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  write_qwen_windows(from, to);
}

void write_qwen3(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  to["head_dim"] = from.model.head_width();
  to["attention_bias"] = from.model.qkv_bias.value_or(from.model.bias);
  write_qwen_windows(from, to);
}

}  // namespace

ForeignFamily llama_foreign() {
  return {.model_type = "llama",
          .doc = "Llama 1 to 3 (Touvron et al. 2023), and the many models of its shape",
          .classes = {{"LlamaForCausalLM", "language_modeling"},
                      {"LLaMAForCausalLM", "language_modeling"},  // the first converted files
                      {"LlamaForSequenceClassification", "text_classification"},
                      {"LlamaModel", "text_features"}},
          .read = read_llama,
          .write = write_llama,
          .rules = llama_rules};
}

ForeignFamily mistral_foreign() {
  return {.model_type = "mistral",
          .doc = "Mistral (Jiang et al. 2023): Llama with a sliding window",
          .classes = {{"MistralForCausalLM", "language_modeling"},
                      {"MistralForSequenceClassification", "text_classification"},
                      {"MistralModel", "text_features"}},
          .read = read_mistral,
          .write = write_mistral,
          .rules = llama_rules};
}

ForeignFamily qwen2_foreign() {
  return {.model_type = "qwen2",
          .doc = "Qwen2 and Qwen2.5 (Yang et al. 2024): Llama with biases on queries, keys and values",
          .classes = {{"Qwen2ForCausalLM", "language_modeling"},
                      {"Qwen2ForSequenceClassification", "text_classification"},
                      {"Qwen2Model", "text_features"}},
          .read = read_qwen2,
          .write = write_qwen2,
          .rules = llama_rules};
}

ForeignFamily qwen3_foreign() {
  return {.model_type = "qwen3",
          .doc = "Qwen3 (Yang et al. 2025): Llama with norms on each head's queries and keys",
          .classes = {{"Qwen3ForCausalLM", "language_modeling"},
                      {"Qwen3ForSequenceClassification", "text_classification"},
                      {"Qwen3Model", "text_features"}},
          .read = read_qwen3,
          .write = write_qwen3,
          .rules = llama_rules};
}

ForeignFamily olmo2_foreign() {
  return {.model_type = "olmo2",
          .doc = "OLMo 2 (Walsh et al. 2024): norms behind the sub-layers and over all heads",
          .classes = {{"Olmo2ForCausalLM", "language_modeling"},
                      {"Olmo2ForSequenceClassification", "text_classification"},
                      {"Olmo2Model", "text_features"}},
          .read = read_olmo2,
          .write = write_olmo2,
          .rules = olmo2_rules};
}

}  // namespace zoo
