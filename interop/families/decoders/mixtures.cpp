// Decoders whose feed-forward networks are mixtures of experts: Mixtral (Jiang et al. 2024), Qwen2-MoE (Yang
// et al. 2024), Qwen3-MoE (Yang et al. 2025) and OLMoE (Muennighoff et al. 2024). Their other layers are
// those of Llama.

#include "interop/families/decoders/mixtures.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/decoders/llama.h"
#include "interop/families/families.h"

namespace zoo {

ExpertsConfig read_expert_counts(ForeignConfig& from, std::string_view count_key, int64_t count,
                                 int64_t active) {
  ExpertsConfig experts{.count = from.integer(count_key, count),
                        .active = from.integer("num_experts_per_tok", active)};
  constexpr int64_t most = 1 << 12;  // as model.experts.count; each has a rule for its tensors
  if (experts.count < 1 || experts.count > most) from.fail(count_key, "must be from 1 to 4096");
  experts.balance = from.number("router_aux_loss_coef", 0.001);
  from.ignore({"output_router_logits"});
  return experts;
}

ExpertsConfig experts_or_usual(const Experiment& experiment) {
  return experiment.model.experts.value_or(ExpertsConfig());
}

void add_experts(const ModelConfig& model, const std::string& theirs, const std::array<std::string, 3>& names,
                 TensorRules& rules) {
  const auto& experts = model.experts.value();
  const int64_t d_ff = experts.d_ff.value_or(model.feed_forward_width());
  const std::array<std::pair<std::string, int64_t>, 3> ours{
      std::pair{"gate", d_ff}, {"up", d_ff}, {"down", model.d_model}};
  for (size_t i = 0; i < ours.size(); ++i) {
    std::vector<std::string> stack;
    for (int64_t e = 0; e < experts.count; ++e)
      stack.push_back(theirs + "experts." + std::to_string(e) + "." + names[i]);
    rules.modules({"decoder.layers.{}.experts." + ours[i].first}, std::move(stack),
                  std::vector<int64_t>(static_cast<size_t>(experts.count), ours[i].second));
  }
  rules.module("decoder.layers.{}.experts.router", theirs + "gate");
}

namespace {

void read_mixtral(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from, {.max_positions = 4096 * 32, .n_kv_heads = 8, .d_ff = 14336, .rotary_theta = 1e6},
                    to);
  to.model.norm_eps = from.number("rms_norm_eps", 1e-5);
  to.model.head_dim = from.optional_integer("head_dim");
  if (const auto window = from.optional_integer("sliding_window")) set_windows({true}, *window, to.model);
  to.model.experts = read_expert_counts(from, "num_local_experts", 8, 2);
  from.ignore({"router_jitter_noise", "pretraining_tp"});  // of training, and of Llama's code
}

void write_mixtral(const Experiment& from, nlohmann::json& to) {
  const auto experts = experts_or_usual(from);
  write_silu_decoder(from, to);
  to["head_dim"] = from.model.head_width();
  to["intermediate_size"] = experts.d_ff.value_or(from.model.feed_forward_width());
  const auto window = window_of(from.model);
  to["sliding_window"] = window ? nlohmann::json(*window) : nlohmann::json(nullptr);
  to["router_aux_loss_coef"] = experts.balance;
  to["num_local_experts"] = experts.count;
  to["num_experts_per_tok"] = experts.active;
}

/// What Qwen's mixtures share.
ExpertsConfig read_qwen_experts(ForeignConfig& from, int64_t count, int64_t active, int64_t d_ff) {
  // transformers 5 writes Qwen3's number under another name.
  const auto* const key = from.has("num_local_experts") ? "num_local_experts" : "num_experts";
  auto experts = read_expert_counts(from, key, count, active);
  experts.d_ff = from.integer("moe_intermediate_size", d_ff);
  experts.normalize = from.flag("norm_topk_prob", false);
  experts.every = from.integer("decoder_sparse_step", 1);
  experts.dense_layers = from.integers("mlp_only_layers");
  return experts;
}

void write_qwen_experts(const ExpertsConfig& from, nlohmann::json& to) {
  to["router_aux_loss_coef"] = from.balance;
  to["num_experts"] = from.count;
  to["num_experts_per_tok"] = from.active;
  to["moe_intermediate_size"] = from.d_ff.value_or(0);
  to["norm_topk_prob"] = from.normalize;
  to["decoder_sparse_step"] = from.every;
  to["mlp_only_layers"] = from.dense_layers;
}

void read_qwen2_moe(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from,
                    {.vocab_size = 151936,
                     .max_positions = 32768,
                     .n_kv_heads = 16,
                     .d_model = 2048,
                     .d_ff = 5632,
                     .n_layers = 24,
                     .n_heads = 16},
                    to);
  to.model.qkv_bias = from.flag("qkv_bias", true);
  to.model.experts = read_qwen_experts(from, 60, 4, 1408);
  to.model.experts->shared_d_ff = from.integer("shared_expert_intermediate_size", 5632);
  to.model.experts->shared_gate = true;
  // Versions of transformers differ in the layers that have a window, and no published model has one.
  from.require("use_sliding_window", false);
  from.ignore({"sliding_window", "max_window_layers", "layer_types"});
}

void write_qwen2_moe(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  to["qkv_bias"] = from.model.qkv_bias.value_or(from.model.bias);
  to["shared_expert_intermediate_size"] = experts_or_usual(from).shared_d_ff.value_or(0);
  write_qwen_experts(experts_or_usual(from), to);
}

void read_qwen3_moe(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from,
                    {.vocab_size = 151936,
                     .max_positions = 32768,
                     .n_kv_heads = 4,
                     .d_model = 2048,
                     .d_ff = 6144,
                     .n_layers = 24},
                    to);
  to.model.head_dim = from.optional_integer("head_dim");
  to.model.qk_norm = true;
  to.model.qkv_bias = to.model.out_bias = from.flag("attention_bias", false);
  to.model.experts = read_qwen_experts(from, 128, 8, 768);
  const bool uses_windows = from.flag("use_sliding_window", false);
  const auto window = from.optional_integer("sliding_window");
  from.ignore({"max_window_layers"});
  // Qwen3-Coder's files say of their layers what is so for the whole family.
  from.require("qkv_bias", false);
  from.require("use_qk_norm", true);
  from.require("shared_expert_intermediate_size", 0);
  if (uses_windows && window) set_windows({true}, *window, to.model);
}

void write_qwen3_moe(const Experiment& from, nlohmann::json& to) {
  write_silu_decoder(from, to);
  to["head_dim"] = from.model.head_width();
  to["attention_bias"] = from.model.qkv_bias.value_or(from.model.bias);
  write_qwen_experts(experts_or_usual(from), to);
  const auto window = window_of(from.model);
  to["use_sliding_window"] = window.has_value();
  to["sliding_window"] = window ? nlohmann::json(*window) : nlohmann::json(nullptr);
}

void read_olmoe(ForeignConfig& from, Experiment& to) {
  read_silu_decoder(from,
                    {.vocab_size = 50304,
                     .max_positions = 4096,
                     .d_model = 2048,
                     .d_ff = 2048,
                     .n_layers = 16,
                     .n_heads = 16},
                    to);
  to.model.norm_eps = from.number("rms_norm_eps", 1e-5);
  to.model.qk_norm = true;
  to.model.qk_norm_width = QkNormWidth::all_heads;
  to.model.qkv_bias = to.model.out_bias = from.flag("attention_bias", false);
  from.require("clip_qkv", nullptr);
  to.model.experts = read_expert_counts(from, "num_experts", 64, 8);
  to.model.experts->balance = from.number("router_aux_loss_coef", 0.01);
  to.model.experts->normalize = from.flag("norm_topk_prob", false);
}

void write_olmoe(const Experiment& from, nlohmann::json& to) {
  const auto experts = experts_or_usual(from);
  write_silu_decoder(from, to);
  to["attention_bias"] = from.model.qkv_bias.value_or(from.model.bias);
  to["intermediate_size"] = experts.d_ff.value_or(from.model.feed_forward_width());
  to["num_experts"] = experts.count;
  to["num_experts_per_tok"] = experts.active;
  to["norm_topk_prob"] = experts.normalize;
  to["router_aux_loss_coef"] = experts.balance;
}

TensorRules mixtral_rules(const Experiment& experiment) {
  auto rules = llama_rules(experiment);
  add_experts(experiment.model, "model.layers.{}.block_sparse_moe.", {"w1", "w3", "w2"}, rules);
  return rules;
}

TensorRules qwen_moe_rules(const Experiment& experiment) {
  auto rules = llama_rules(experiment);
  const std::string theirs = "model.layers.{}.mlp.";
  add_experts(experiment.model, theirs, {"gate_proj", "up_proj", "down_proj"}, rules);
  for (const std::string name : {"gate", "up", "down"})
    rules.module("decoder.layers.{}.experts.shared." + name, theirs + "shared_expert." + name + "_proj");
  rules.module("decoder.layers.{}.experts.shared_gate", theirs + "shared_expert_gate");
  return rules;
}

}  // namespace

ForeignFamily mixtral_foreign() {
  return {.model_type = "mixtral",
          .doc = "Mixtral (Jiang et al. 2024): Mistral with experts",
          .classes = {{"MixtralForCausalLM", "language_modeling"},
                      {"MixtralForSequenceClassification", "text_classification"},
                      {"MixtralModel", "text_features"}},
          .read = read_mixtral,
          .write = write_mixtral,
          .rules = mixtral_rules};
}

ForeignFamily olmoe_foreign() {
  return {
      .model_type = "olmoe",
      .doc =
          "OLMoE (Muennighoff et al. 2024): 64 small experts, norms over the queries and keys of all heads",
      .classes = {{"OlmoeForCausalLM", "language_modeling"}, {"OlmoeModel", "text_features"}},
      .read = read_olmoe,
      .write = write_olmoe,
      .rules = qwen_moe_rules};
}

ForeignFamily qwen2_moe_foreign() {
  return {
      .model_type = "qwen2_moe",
      .doc = "Qwen1.5-MoE and Qwen2-MoE (Yang et al. 2024): Qwen2 with experts, one of them for every token",
      .classes = {{"Qwen2MoeForCausalLM", "language_modeling"},
                  {"Qwen2MoeForSequenceClassification", "text_classification"},
                  {"Qwen2MoeModel", "text_features"}},
      .read = read_qwen2_moe,
      .write = write_qwen2_moe,
      .rules = qwen_moe_rules};
}

ForeignFamily qwen3_moe_foreign() {
  return {.model_type = "qwen3_moe",
          .doc = "Qwen3-MoE (Yang et al. 2025): Qwen3 with experts",
          .classes = {{"Qwen3MoeForCausalLM", "language_modeling"},
                      {"Qwen3MoeForSequenceClassification", "text_classification"},
                      {"Qwen3MoeModel", "text_features"}},
          .read = read_qwen3_moe,
          .write = write_qwen3_moe,
          .rules = qwen_moe_rules};
}

}  // namespace zoo
