// Command R (Cohere 2024) and Command R7B and A (Cohere 2024): parallel sub-layers behind a norm without
// bias, neighbouring elements turned, and a factor on the logits. The second generation turns only the layers
// with a window.

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/decoders/llama.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_cohere_keys(ForeignConfig& from, double usual_theta, Experiment& to) {
  read_silu_decoder(from,
                    {.vocab_size = 256000,
                     .max_positions = 8192,
                     .d_model = 8192,
                     .d_ff = 22528,
                     .n_layers = 40,
                     .n_heads = 64,
                     .tie_embeddings = true,
                     .rotary_theta = usual_theta},
                    to);
  auto& model = to.model;
  model.norm = NormKind::layer_norm;  // without bias, as all of the model
  model.norm_eps = from.number("layer_norm_eps", 1e-5);
  model.norm_placement = NormPlacement::parallel;
  model.rotary.layout = RotaryLayout::interleaved;
  model.qkv_bias = model.out_bias = from.flag("attention_bias", false);
  const double scale = from.number("logit_scale", 0.0625);
  if (scale <= 0) from.fail("logit_scale", "must be positive");
  if (scale != 1) model.output_scale = scale;
  // Remarks on how the authors' program computes.
  from.ignore({"layer_switch", "order_of_interleaved_layers", "position_embedding_type", "rotary_pct",
               "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
               "use_parallel_embedding"});
}

void write_cohere_keys(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  const auto& model = from.model;
  to.erase("rms_norm_eps");
  to["layer_norm_eps"] = model.norm_eps;
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  to["logit_scale"] = model.output_scale.value_or(1);
}

void read_cohere(ForeignConfig& from, Experiment& to) {
  // Where files say nothing, versions of transformers differ: 10000 in the fourth, 500000 in the fifth.
  if (!from.has("rope_theta") && !from.has("rope_parameters"))
    from.fail("rope_theta", "is missing, and versions of transformers differ in its default");
  read_cohere_keys(from, 10000, to);
  to.model.qk_norm = from.flag("use_qk_norm", false);
  if (to.model.qk_norm) to.model.qk_norm_width = QkNormWidth::each_head;
  // The length that longer files promise; texts of this model are as long as max_position_embeddings.
  from.ignore({"model_max_length"});
}

void write_cohere(const Experiment& from, nlohmann::json& to) {
  write_cohere_keys(from, to);
  to["use_qk_norm"] = from.model.qk_norm;
}

void read_cohere2(ForeignConfig& from, Experiment& to) {
  read_cohere_keys(from, 10000, to);
  auto& model = to.model;
  model.head_dim = from.optional_integer("head_dim");
  const int64_t size = from.integer("sliding_window", 4096);
  if (size < 1) from.fail("sliding_window", "must be at least 1");
  int64_t period = 4;
  for (const std::string_view key : {"sliding_window_pattern", "_sliding_window_pattern"}) {
    if (from.has(key)) period = from.integer(key);
  }
  if (period < 1) from.fail("sliding_window_pattern", "must be at least 1");
  const auto is_window = read_windows(from, windows_with_period(model.n_layers, period));
  if (std::ranges::find(is_window, true) == is_window.end())
    from.fail("layer_types", "no layer has positions: this is not supported");
  set_windows(is_window, size, model);
  set_turns(is_window, model);
  from.ignore({"cache_implementation"});
}

void write_cohere2(const Experiment& from, nlohmann::json& to) {
  write_cohere_keys(from, to);
  const auto& model = from.model;
  to["head_dim"] = model.head_width();
  to["sliding_window"] = window_of(model).value_or(model.max_positions);
  to["layer_types"] = layer_types_of(model);
}

TensorRules cohere_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string ours = "decoder.layers.{}.", theirs = "model.layers.{}.";
  const int64_t width = model.head_width();
  TensorRules rules;
  add_llama_frame(experiment, rules);
  add_llama_attention(model, rules);
  add_llama_feed_forward(model, rules);
  rules.module(ours + "residual.norm", theirs + "input_layernorm");
  rules.tensor(ours + "self_attention.q_norm.weight", theirs + "self_attn.q_norm.weight", Move::reshaped,
               {model.n_heads, width});
  rules.tensor(ours + "self_attention.k_norm.weight", theirs + "self_attn.k_norm.weight", Move::reshaped,
               {model.kv_heads(), width});
  return rules;
}

}  // namespace

ForeignFamily cohere_foreign() {
  return {.model_type = "cohere",
          .doc = "Command R and R+ (Cohere 2024): parallel sub-layers, a factor on the logits",
          .classes = {{"CohereForCausalLM", "language_modeling"}, {"CohereModel", "text_features"}},
          .read = read_cohere,
          .write = write_cohere,
          .rules = cohere_rules};
}

ForeignFamily cohere2_foreign() {
  return {.model_type = "cohere2",
          .doc = "Command R7B and Command A (Cohere 2024): windows, and full layers without positions",
          .classes = {{"Cohere2ForCausalLM", "language_modeling"}, {"Cohere2Model", "text_features"}},
          .read = read_cohere2,
          .write = write_cohere2,
          .rules = cohere_rules};
}

}  // namespace zoo
