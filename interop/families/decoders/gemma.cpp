// Gemma 2 (Gemma Team 2024) and Gemma 3 (Gemma Team 2025), the models for text. Gains are 1 + weight, a norm
// stands on both sides of each sub-layer, and layers with a sliding window take turns with full ones.

#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/decoders/llama.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_gemma(ForeignConfig& from, int64_t usual_period, double usual_theta, Experiment& to) {
  read_llama_like(from,
                  {.vocab_size = 256000,
                   .max_positions = 8192,
                   .n_kv_heads = 4,
                   .d_model = 2304,
                   .d_ff = 9216,
                   .n_layers = 26,
                   .n_heads = 8,
                   .tie_embeddings = true,
                   .rotary_theta = usual_theta},
                  to);
  auto& model = to.model;
  model.head_dim = from.integer("head_dim", 256);
  model.activation = read_gated_activation(from, "hidden_activation", "gelu_pytorch_tanh");
  model.norm_unit_offset = true;
  model.norm_placement = NormPlacement::sandwich;
  model.attention_scale = 1 / std::sqrt(from.number("query_pre_attn_scalar", 256));
  model.attention_softcap = from.optional_number("attn_logit_softcapping");
  model.logits_softcap = from.optional_number("final_logit_softcapping");
  model.scale_embeddings = true;
  model.qkv_bias = model.out_bias = from.flag("attention_bias", false);
  const auto size = from.integer("sliding_window", 4096);
  int64_t period = usual_period;
  for (const std::string_view key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    if (from.has(key)) period = from.integer(key);
  }
  if (period < 1) from.fail("sliding_window_pattern", "must be at least 1");
  if (size < 1) from.fail("sliding_window", "must be at least 1");
  set_windows(read_windows(from, windows_with_period(model.n_layers, period)), size, model);
  from.require("use_bidirectional_attention", false);
  // The first is an older name, which is not read any more.
  from.ignore({"hidden_act", "cache_implementation"});
}

void read_gemma2(ForeignConfig& from, Experiment& to) { read_gemma(from, 2, 10000, to); }

void read_gemma3(ForeignConfig& from, Experiment& to) {
  read_gemma(from, 6, 1000000, to);
  to.model.qk_norm = true;
  const double local_theta = from.number("rope_local_base_freq", 10000);
  if (!to.model.rotary.local_theta)
    to.model.rotary.local_theta = local_theta;  // else rope_parameters says it
}

void write_gemma(const Experiment& from, nlohmann::json& to) {
  write_llama_like(from, to);
  const auto& model = from.model;
  const double scale = model.attention_scale.value_or(1 / std::sqrt(static_cast<double>(model.head_width())));
  to["head_dim"] = model.head_width();
  to["hidden_activation"] =
      model.activation == Activation::geglu_tanh ? "gelu_pytorch_tanh" : foreign_name(model.activation);
  to["query_pre_attn_scalar"] = 1 / (scale * scale);
  to["attn_logit_softcapping"] = or_null(model.attention_softcap);
  to["final_logit_softcapping"] = or_null(model.logits_softcap);
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  to["sliding_window"] = window_of(model).value_or(model.max_positions);
  to["layer_types"] = layer_types_of(model);
}

void write_gemma2(const Experiment& from, nlohmann::json& to) {
  write_gemma(from, to);
  to.erase("rope_scaling");
}

void write_gemma3(const Experiment& from, nlohmann::json& to) {
  write_gemma(from, to);
  to["rope_local_base_freq"] = from.model.rotary.local_theta.value_or(from.model.rotary.theta);
}

TensorRules gemma_rules(const Experiment& experiment) {
  const std::string ours = "decoder.layers.{}.residual.", theirs = "model.layers.{}.";
  auto rules = llama_like_rules(experiment);
  rules.module(ours + "self_attention_output_norm", theirs + "post_attention_layernorm");
  rules.module(ours + "feed_forward_norm", theirs + "pre_feedforward_layernorm");
  rules.module(ours + "feed_forward_output_norm", theirs + "post_feedforward_layernorm");
  return rules;
}

}  // namespace

ForeignFamily gemma2_foreign() {
  return {.model_type = "gemma2",
          .doc = "Gemma 2 (Gemma Team 2024)",
          .classes = {{"Gemma2ForCausalLM", "language_modeling"}, {"Gemma2Model", "text_features"}},
          .read = read_gemma2,
          .write = write_gemma2,
          .rules = gemma_rules};
}

ForeignFamily gemma3_foreign() {
  return {.model_type = "gemma3_text",
          .doc = "Gemma 3 (Gemma Team 2025), the models for text",
          .classes = {{"Gemma3ForCausalLM", "language_modeling"}, {"Gemma3TextModel", "text_features"}},
          .read = read_gemma3,
          .write = write_gemma3,
          .rules = gemma_rules};
}

}  // namespace zoo
