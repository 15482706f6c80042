// Decoders that change one thing or two of Llama: OLMo (Groeneveld et al. 2024) has norms without weights,
// Granite 3 (IBM 2024) four factors, SmolLM3 (Hugging Face 2025) layers without positions, and StarCoder2
// (Lozhkov et al. 2024) GPT-2's norms and feed-forward network.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/decoders/llama.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_olmo(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from, {.vocab_size = 50304}, to);
  auto& model = to.model;
  model.norm = NormKind::layer_norm_plain;
  model.norm_eps = 1e-5;
  model.qkv_bias = model.out_bias = from.flag("attention_bias", false);
  model.qkv_clip = from.optional_number("clip_qkv");
}

void write_olmo(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  to.erase("rms_norm_eps");
  to["attention_bias"] = from.model.qkv_bias.value_or(from.model.bias);
  to["clip_qkv"] = from.model.qkv_clip ? nlohmann::json(*from.model.qkv_clip) : nlohmann::json(nullptr);
}

/// A factor that is 1 where a file says nothing.
std::optional<double> read_factor(ForeignConfig& from, std::string_view key) {
  const double factor = from.number(key, 1);
  if (factor <= 0) from.fail(key, "must be positive");
  return factor == 1 ? std::nullopt : std::optional(factor);
}

void read_granite(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from, {}, to);
  auto& model = to.model;
  model.qkv_bias = model.out_bias = from.flag("attention_bias", false);
  model.ff_bias = from.flag("mlp_bias", false);
  model.embedding_scale = read_factor(from, "embedding_multiplier");
  model.residual_scale = read_factor(from, "residual_multiplier").value_or(1);
  model.attention_scale = from.number("attention_multiplier", 1);
  if (const auto divisor = read_factor(from, "logits_scaling")) model.output_scale = reciprocal_of(*divisor);
}

void write_granite(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  const auto& model = from.model;
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  to["mlp_bias"] = model.ff_bias.value_or(model.bias);
  to["embedding_multiplier"] = model.embedding_scale.value_or(1);
  to["residual_multiplier"] = model.residual_scale;
  to["attention_multiplier"] =
      model.attention_scale.value_or(1 / std::sqrt(static_cast<double>(model.head_width())));
  to["logits_scaling"] = reciprocal_of(model.output_scale.value_or(1));
}

void read_smollm3(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from,
                    {.vocab_size = 128256,
                     .max_positions = 32768,
                     .n_kv_heads = 4,
                     .d_model = 2048,
                     .n_layers = 36,
                     .n_heads = 16,
                     .tie_embeddings = true,
                     .rotary_theta = 2e6},
                    to);
  auto& model = to.model;
  model.qkv_bias = model.out_bias = from.flag("attention_bias", false);
  model.ff_bias = from.flag("mlp_bias", false);
  const int64_t interval = from.integer("no_rope_layer_interval", 4);
  if (interval < 1) from.fail("no_rope_layer_interval", "must be at least 1");
  auto turned = windows_with_period(model.n_layers, interval);
  if (const auto listed = from.integers("no_rope_layers"); !listed.empty()) {
    if (listed.size() != turned.size()) from.fail("no_rope_layers", "has not one entry for each layer");
    for (size_t i = 0; i < listed.size(); ++i) turned[i] = listed[i] != 0;
  }
  if (std::ranges::find(turned, true) == turned.end())
    from.fail("no_rope_layers", "no layer has positions: this is not supported");
  set_turns(turned, model);
  const auto size = from.optional_integer("sliding_window");
  const bool uses_windows = from.flag("use_sliding_window", false) && size;
  std::vector<bool> rule;
  for (const bool is : turned) rule.push_back(uses_windows && !is);
  const auto is_window = read_windows(from, rule);
  from.ignore({"max_window_layers", "pretraining_tp"});
  if (uses_windows) set_windows(is_window, *size, model);
}

void write_smollm3(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  const auto& model = from.model;
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  to["mlp_bias"] = model.ff_bias.value_or(model.bias);
  auto turned = nlohmann::json::array();
  for (int64_t layer = 0; layer < model.n_layers; ++layer)
    turned.push_back(model.rotary.is_turned(layer) ? 1 : 0);
  to["no_rope_layers"] = turned;
  to["layer_types"] = layer_types_of(model);
  to["use_sliding_window"] = window_of(model).has_value();
  to["sliding_window"] = window_value(model);
}

void read_starcoder2(ForeignConfig& from, Experiment& to) {
  read_llama_like(from,
                  {.vocab_size = 49152,
                   .max_positions = 4096,
                   .n_kv_heads = 2,
                   .d_model = 3072,
                   .d_ff = 12288,
                   .n_layers = 30,
                   .n_heads = 24,
                   .tie_embeddings = true},
                  to);
  auto& model = to.model;
  model.activation = read_activation(from, "hidden_act", "gelu_pytorch_tanh");
  model.norm = NormKind::layer_norm;
  model.norm_eps = from.number("norm_epsilon", 1e-5);
  model.bias = true;  // of norms
  model.qkv_bias = model.out_bias = model.ff_bias = from.flag("use_bias", true);
  model.dropout = from.number("residual_dropout", 0);
  if (const auto window = from.optional_integer("sliding_window")) set_windows({true}, *window, model);
  from.require("mlp_type", "default");
  from.require("norm_type", "layer_norm");
  from.ignore({"embedding_dropout"});
  // Keys of the authors' program, which transformers does not read.
  from.ignore({"activation_function", "attention_softmax_in_fp32", "layer_norm_epsilon",
               "scale_attention_softmax_in_fp32", "scale_attn_weights"});
}

void write_starcoder2(const Experiment& from, nlohmann::json& to) {
  write_llama_like(from, to);
  const auto& model = from.model;
  to.erase("rms_norm_eps");
  to["norm_epsilon"] = model.norm_eps;
  to["hidden_act"] =
      model.activation == Activation::gelu_tanh ? "gelu_pytorch_tanh" : foreign_name(model.activation);
  to["use_bias"] = model.qkv_bias.value_or(model.bias);
  to["residual_dropout"] = to["embedding_dropout"] = model.dropout;
  to["sliding_window"] = window_value(model);
}

TensorRules starcoder2_rules(const Experiment& experiment) {
  const std::string ours = "decoder.layers.{}.", theirs = "model.layers.{}.";
  TensorRules rules;
  add_llama_frame(experiment, rules);
  add_llama_attention(experiment.model, rules);
  rules.module(ours + "residual.feed_forward_norm", theirs + "post_attention_layernorm");
  rules.module(ours + "feed_forward.up", theirs + "mlp.c_fc");
  rules.module(ours + "feed_forward.down", theirs + "mlp.c_proj");
  return rules;
}

}  // namespace

ForeignFamily olmo_foreign() {
  return {.model_type = "olmo",
          .doc = "OLMo (Groeneveld et al. 2024): norms without weights",
          .classes = {{"OlmoForCausalLM", "language_modeling"},
                      {"OlmoForSequenceClassification", "text_classification"},
                      {"OlmoModel", "text_features"}},
          .read = read_olmo,
          .write = write_olmo,
          .rules = llama_rules};
}

ForeignFamily granite_foreign() {
  return {.model_type = "granite",
          .doc = "Granite 3 (IBM 2024): Llama with four factors",
          .classes = {{"GraniteForCausalLM", "language_modeling"}, {"GraniteModel", "text_features"}},
          .read = read_granite,
          .write = write_granite,
          .rules = llama_rules};
}

ForeignFamily smollm3_foreign() {
  return {.model_type = "smollm3",
          .doc = "SmolLM3 (Hugging Face 2025): Llama with layers without positions",
          .classes = {{"SmolLM3ForCausalLM", "language_modeling"},
                      {"SmolLM3ForSequenceClassification", "text_classification"},
                      {"SmolLM3Model", "text_features"}},
          .read = read_smollm3,
          .write = write_smollm3,
          .rules = llama_rules};
}

ForeignFamily starcoder2_foreign() {
  return {.model_type = "starcoder2",
          .doc = "StarCoder2 (Lozhkov et al. 2024): grouped queries, windows, GPT-2's norms and activation",
          .classes = {{"Starcoder2ForCausalLM", "language_modeling"},
                      {"Starcoder2ForSequenceClassification", "text_classification"},
                      {"Starcoder2Model", "text_features"}},
          .read = read_starcoder2,
          .write = write_starcoder2,
          .rules = starcoder2_rules};
}

}  // namespace zoo
