// gpt-oss (OpenAI 2025): a mixture of experts with biases, a clamped gate, sinks, and a window in every
// second layer. Published files have the experts in MXFP4 (packed_weights.h).

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/decoders/llama.h"
#include "interop/families/decoders/mixtures.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_gpt_oss(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  read_llama_like(from,
                  {.vocab_size = 201088,
                   .max_positions = 131072,
                   .n_kv_heads = 8,
                   .d_model = 2880,
                   .d_ff = 2880,
                   .n_layers = 36,
                   .n_heads = 64,
                   .rotary_theta = 150000},
                  to);
  if (!from.json().contains("rope_scaling") && !from.json().contains("rope_parameters")) {
    model.rotary.scaling = RotaryScaling::yarn;
    model.rotary.factor = 32;
    model.rotary.original_max_positions = 4096;
    model.rotary.rounded = false;
  }
  model.norm_eps = from.number("rms_norm_eps", 1e-5);
  model.head_dim = from.optional_integer("head_dim");
  model.qkv_bias = model.out_bias = from.flag("attention_bias", true);
  model.attention_sinks = true;
  if (const auto size = from.optional_integer("sliding_window")) {
    std::vector<bool> rule;
    for (int64_t layer = 0; layer < model.n_layers; ++layer) rule.push_back(layer % 2 == 0);
    set_windows(read_windows(from, rule), *size, model);
  } else {
    from.ignore({"layer_types"});
  }
  model.experts = read_expert_counts(from, "num_local_experts", 128, 4);
  model.experts->router = Router::softmax_after_top_k;
  model.experts->normalize = false;
  model.experts->router_bias = true;
  model.ff_bias = true;
  model.activation = Activation::swiglu_clamped;
  from.require("hidden_act", "silu");
  from.require("swiglu_alpha", 1.702);
  from.require("swiglu_limit", 7.0);
  // They say again what other keys say.
  from.ignore({"experts_per_token", "num_experts", "initial_context_length"});
}

void write_gpt_oss(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  const auto experts = experts_or_usual(from);
  write_llama_like(from, to);
  // Without the key there is the usual scaling.
  if (model.rotary.scaling == RotaryScaling::none) to["rope_scaling"] = {{"rope_type", "default"}};
  to["head_dim"] = model.head_width();
  to["intermediate_size"] = experts.d_ff.value_or(model.feed_forward_width());
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  to["hidden_act"] = "silu";
  to["sliding_window"] = window_value(model);
  to["layer_types"] = layer_types_of(model);
  to["num_local_experts"] = experts.count;
  to["num_experts_per_tok"] = experts.active;
  to.erase("experts_per_token");
  to.erase("num_experts");
  to["router_aux_loss_coef"] = experts.balance;
}

TensorRules gpt_oss_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const auto experts = experts_or_usual(experiment);
  const std::string ours = "decoder.layers.{}.", theirs = "model.layers.{}.";
  TensorRules rules;
  add_llama_frame(experiment, rules);
  add_llama_attention(model, rules);
  rules.tensor(ours + "self_attention.sinks", theirs + "self_attn.sinks");
  rules.module(ours + "residual.feed_forward_norm", theirs + "post_attention_layernorm");
  rules.module(ours + "experts.router", theirs + "mlp.router");
  // The columns of gate and up take turns.
  const int64_t n_inner = experts.count * experts.d_ff.value_or(model.feed_forward_width());
  rules.stacked({ours + "experts.gate", ours + "experts.up"}, theirs + "mlp.experts.gate_up_proj",
                {.count = n_inner, .sections = {n_inner, n_inner}, .n_matrices = experts.count});
  rules.stacked({ours + "experts.down"}, theirs + "mlp.experts.down_proj",
                {.sections = {experts.count * model.d_model}, .n_matrices = experts.count});
  return rules;
}

}  // namespace

ForeignFamily gpt_oss_foreign() {
  return {.model_type = "gpt_oss",
          .doc = "gpt-oss (OpenAI 2025): experts with biases, sinks, a window in every second layer",
          .classes = {{"GptOssForCausalLM", "language_modeling"},
                      {"GptOssForSequenceClassification", "text_classification"},
                      {"GptOssModel", "text_features"}},
          .read = read_gpt_oss,
          .write = write_gpt_oss,
          .rules = gpt_oss_rules};
}

}  // namespace zoo
