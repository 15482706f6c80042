// Phi-1 to Phi-2 (Li et al. 2023), whose layers are those of GPT-J with Llama's keys, and Phi-3 (Abdin et al.
// 2024): Llama with stacked matrices.

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/decoders/llama.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_phi(ForeignConfig& from, Experiment& to) {
  read_llama_like(
      from, {.vocab_size = 51200, .d_model = 2048, .d_ff = 8192, .n_layers = 24, .rotary_fraction = 0.5}, to);
  auto& model = to.model;
  model.activation = read_activation(from, "hidden_act", "gelu_new");
  model.norm = NormKind::layer_norm;
  model.norm_eps = from.number("layer_norm_eps", 1e-5);
  model.norm_placement = NormPlacement::parallel;
  model.bias = true;
  model.output_bias = true;
  model.dropout = from.number("resid_pdrop", 0);
  from.require("qk_layernorm", false);
  from.ignore({"embd_pdrop"});
}

void write_phi(const Experiment& from, nlohmann::json& to) {
  write_llama_like(from, to);
  const auto& model = from.model;
  to.erase("rms_norm_eps");
  to["layer_norm_eps"] = model.norm_eps;
  to["hidden_act"] = foreign_name(model.activation);
  to["resid_pdrop"] = to["embd_pdrop"] = model.dropout;
  to["partial_rotary_factor"] = model.rotary.fraction;
}

TensorRules phi_rules(const Experiment& experiment) {
  const std::string ours = "decoder.layers.{}.", theirs = "model.layers.{}.";
  TensorRules rules;
  add_llama_frame(experiment, rules, "model.final_layernorm");
  add_llama_attention(experiment.model, rules, "dense");
  rules.module(ours + "residual.norm", theirs + "input_layernorm");
  rules.module(ours + "feed_forward.up", theirs + "mlp.fc1");
  rules.module(ours + "feed_forward.down", theirs + "mlp.fc2");
  return rules;
}

void read_phi3(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(
      from,
      {.vocab_size = 32064, .max_positions = 4096, .d_model = 3072, .d_ff = 8192, .rotary_fraction = 1.0},
      to);
  auto& model = to.model;
  model.norm_eps = from.number("rms_norm_eps", 1e-5);
  model.dropout = from.number("resid_pdrop", 0);
  model.projection = Projection::fused;
  model.gate = GateProjection::fused;
  if (const auto window = from.optional_integer("sliding_window")) set_windows({true}, *window, model);
  from.require("attention_bias", false);
  from.require("mlp_bias", false);
  from.require("lm_head_bias", false);
  from.ignore({"embd_pdrop", "full_attn_mod", "interpolate_factor"});  // which transformers does not read
}

void write_phi3(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  const auto& model = from.model;
  to["resid_pdrop"] = to["embd_pdrop"] = model.dropout;
  to["partial_rotary_factor"] = model.rotary.fraction;
  to["sliding_window"] = window_value(model);
  const auto original = static_cast<double>(model.max_positions);
  to["original_max_position_embeddings"] = model.max_positions;
  if (model.rotary.scaling != RotaryScaling::longrope) return;
  // transformers 4 takes these keys alone. The factor on cosine and sine follows from both lengths.
  const double amplitude = model.rotary.attention_factor.value_or(1);
  to["max_position_embeddings"] =
      std::llround(original * std::exp((amplitude * amplitude - 1) * std::log(original)));
  to["rope_scaling"] = {
      {"type", "longrope"}, {"short_factor", model.rotary.divisors}, {"long_factor", model.rotary.divisors}};
}

TensorRules phi3_rules(const Experiment& experiment) {
  const std::string ours = "decoder.layers.{}.", theirs = "model.layers.{}.";
  TensorRules rules;
  add_llama_frame(experiment, rules);
  add_stacked_attention(experiment.model, ours + "self_attention.", theirs + "self_attn.qkv_proj", 1, rules);
  rules.module(ours + "self_attention.out", theirs + "self_attn.o_proj");
  rules.module(ours + "residual.feed_forward_norm", theirs + "post_attention_layernorm");
  add_stacked_gate(ours + "feed_forward.", theirs + "mlp.gate_up_proj", rules);
  rules.module(ours + "feed_forward.down", theirs + "mlp.down_proj");
  return rules;
}

}  // namespace

ForeignFamily phi_foreign() {
  return {.model_type = "phi",
          .doc = "Phi-1, Phi-1.5 and Phi-2 (Li et al. 2023)",
          .classes = {{"PhiForCausalLM", "language_modeling"},
                      {"PhiForSequenceClassification", "text_classification"},
                      {"PhiModel", "text_features"}},
          .read = read_phi,
          .write = write_phi,
          .rules = phi_rules};
}

ForeignFamily phi3_foreign() {
  return {.model_type = "phi3",
          .doc = "Phi-3, Phi-3.5 and Phi-4 (Abdin et al. 2024): Llama with stacked matrices",
          .classes = {{"Phi3ForCausalLM", "language_modeling"},
                      {"Phi3ForSequenceClassification", "text_classification"},
                      {"Phi3Model", "text_features"}},
          .read = read_phi3,
          .write = write_phi3,
          .rules = phi3_rules};
}

}  // namespace zoo
