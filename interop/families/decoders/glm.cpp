// GLM-4 (GLM Team 2024) and its successor GLM-4-0414: Llama with neighbouring elements of half of each head
// turned, and stacked gates. The second has norms on both sides of each sub-layer.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/decoders/llama.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_glm(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from,
                    {.vocab_size = 151552,
                     .max_positions = 131072,
                     .n_kv_heads = 2,
                     .d_ff = 13696,
                     .n_layers = 40,
                     .rotary_fraction = 0.5},
                    to);
  auto& model = to.model;
  model.norm_eps = from.number("rms_norm_eps", 1.5625e-7);
  model.head_dim = from.integer("head_dim", 128);
  model.qkv_bias = from.flag("attention_bias", true);
  model.rotary.layout = RotaryLayout::interleaved;
  model.gate = GateProjection::fused;
}

void read_glm4(ForeignConfig& from, Experiment& to) {
  read_glm(from, to);
  to.model.norm_placement = NormPlacement::sandwich;
}

void write_glm(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  const auto& model = from.model;
  to.erase("rope_scaling");  // the fourth version of transformers does not know it
  if (model.rotary.scaling != RotaryScaling::none) write_rotary(model, to);
  to["head_dim"] = model.head_width();
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  to["partial_rotary_factor"] = model.rotary.fraction;
}

/// A model has the last two norms, or has not.
TensorRules glm_rules(const Experiment& experiment) {
  const std::string ours = "decoder.layers.{}.", theirs = "model.layers.{}.";
  TensorRules rules;
  add_llama_frame(experiment, rules);
  add_llama_attention(experiment.model, rules);
  rules.module(ours + "residual.feed_forward_norm", theirs + "post_attention_layernorm");
  add_stacked_gate(ours + "feed_forward.", theirs + "mlp.gate_up_proj", rules);
  rules.module(ours + "feed_forward.down", theirs + "mlp.down_proj");
  rules.module(ours + "residual.self_attention_output_norm", theirs + "post_self_attn_layernorm");
  rules.module(ours + "residual.feed_forward_output_norm", theirs + "post_mlp_layernorm");
  return rules;
}

}  // namespace

ForeignFamily glm_foreign() {
  return {.model_type = "glm",
          .doc = "GLM-4 (GLM Team 2024): half of each head turned",
          .classes = {{"GlmForCausalLM", "language_modeling"},
                      {"GlmForSequenceClassification", "text_classification"},
                      {"GlmModel", "text_features"}},
          .read = read_glm,
          .write = write_glm,
          .rules = glm_rules};
}

ForeignFamily glm4_foreign() {
  return {.model_type = "glm4",
          .doc = "GLM-4-0414 (GLM Team 2024): GLM-4 with norms on both sides of each sub-layer",
          .classes = {{"Glm4ForCausalLM", "language_modeling"},
                      {"Glm4ForSequenceClassification", "text_classification"},
                      {"Glm4Model", "text_features"}},
          .read = read_glm4,
          .write = write_glm,
          .rules = glm_rules};
}

}  // namespace zoo
