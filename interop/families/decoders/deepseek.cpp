// DeepSeek V2 and V3 (DeepSeek-AI 2024): latent attention, and a mixture of many small experts in groups,
// with one network for every token. Published files of V3 have their matrices in F8_E4M3 (packed_weights.h).

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/decoders/llama.h"
#include "interop/families/decoders/mixtures.h"
#include "interop/families/families.h"
#include "models/mixers/latent_attention.h"

namespace zoo {
namespace {

/// The norms of the latent vectors have this epsilon, whatever config.json says of the others.
constexpr double kLatentEps = 1e-6;

/// The values of keys that a config.json may lack.
struct DeepseekDefaults {
  LlamaDefaults llama;
  int64_t moe_d_ff = 2048, n_experts = 256, n_active = 8, n_shared = 1, first_dense = 3;
  double scale = 1;
};

void read_latent(ForeignConfig& from, ModelConfig& model) {
  const int64_t plain = from.integer("qk_nope_head_dim", 128), turned = from.integer("qk_rope_head_dim", 64);
  if (plain < 1 || turned < 1)
    from.fail(plain < 1 ? "qk_nope_head_dim" : "qk_rope_head_dim", "must be at least 1");
  LatentKeys keys{.kv_rank = from.integer("kv_lora_rank", 512),
                  .value_dim = from.integer("v_head_dim", 128),
                  .norm_eps = kLatentEps};
  // null says that queries come from the whole vector.
  if (!from.json().contains("q_lora_rank") || from.has("q_lora_rank"))
    keys.q_rank = from.integer("q_lora_rank", 1536);
  from.ignore({"q_lora_rank"});
  from.require("num_key_value_heads", model.n_heads);
  model.n_kv_heads.reset();
  model.head_dim = plain + turned;
  model.rotary.fraction = static_cast<double>(turned) / static_cast<double>(plain + turned);
  model.attention = {Selection("latent", keys)};
  model.qkv_bias = model.out_bias = from.flag("attention_bias", false);
  from.ignore({"head_dim", "qk_head_dim"});  // they follow
}

/// YaRN's factor on the scores, which stands with the scaling of positions.
void read_score_factor(const ForeignConfig& from, ModelConfig& model) {
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    const auto& json = from.json();
    if (!json.contains(key) || !json[key].is_object() || !json[key].contains("mscale_all_dim")) continue;
    const auto& value = json[key]["mscale_all_dim"];
    if (value.is_number() && model.rotary.scaling == RotaryScaling::yarn)
      model.rotary.mscale_all_dim = value.get<double>();
  }
}

void read_deepseek(ForeignConfig& from, const DeepseekDefaults& defaults, Experiment& to) {
  read_silu_decoder(from, defaults.llama, to);
  auto& model = to.model;
  read_latent(from, model);
  read_score_factor(from, model);
  auto experts = read_expert_counts(from, "n_routed_experts", defaults.n_experts, defaults.n_active);
  experts.d_ff = from.integer("moe_intermediate_size", defaults.moe_d_ff);
  if (const int64_t shared = from.integer("n_shared_experts", defaults.n_shared); shared > 0)
    experts.shared_d_ff = shared * *experts.d_ff;
  experts.first_dense = from.integer("first_k_dense_replace", defaults.first_dense);
  experts.scale = from.number("routed_scaling_factor", defaults.scale);
  experts.balance = from.number("aux_loss_alpha", 0.001);
  model.experts = experts;
  from.require("moe_layer_freq", 1);
  from.require("ep_size", 1);
  from.ignore({"pretraining_tp", "seq_aux", "num_nextn_predict_layers", "num_mtp_layers"});
}

void write_deepseek(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  const auto experts = experts_or_usual(from);
  const auto& mixer = model.attention_of(0);
  const LatentKeys usual;
  const auto& keys = mixer.type == "latent" ? mixer.as<LatentKeys>() : usual;
  const int64_t turned = model.rotary_width();
  write_silu_decoder(from, to);
  to["num_key_value_heads"] = model.n_heads;
  to.erase("head_dim");
  to.erase("qk_head_dim");
  to["qk_nope_head_dim"] = model.head_width() - turned;
  to["qk_rope_head_dim"] = turned;
  to["v_head_dim"] = keys.value_dim.value_or(model.head_width() - turned);
  to["kv_lora_rank"] = keys.kv_rank;
  to["q_lora_rank"] = keys.q_rank ? nlohmann::json(*keys.q_rank) : nlohmann::json(nullptr);
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  if (model.rotary.mscale_all_dim > 0) to["rope_scaling"]["mscale_all_dim"] = model.rotary.mscale_all_dim;
  const int64_t d_ff = experts.d_ff.value_or(model.feed_forward_width());
  to["n_routed_experts"] = experts.count;
  to["num_experts_per_tok"] = experts.active;
  to["moe_intermediate_size"] = d_ff;
  to["n_shared_experts"] = experts.shared_d_ff.value_or(0) / d_ff;
  to["first_k_dense_replace"] = experts.first_dense;
  to["routed_scaling_factor"] = experts.scale;
  to["n_group"] = experts.groups;
  to["topk_group"] = experts.active_groups;
  to["aux_loss_alpha"] = experts.balance;
}

void read_deepseek_v2(ForeignConfig& from, Experiment& to) {
  read_deepseek(from,
                {.llama = {.vocab_size = 102400},
                 .moe_d_ff = 1407,
                 .n_experts = 64,
                 .n_active = 6,
                 .n_shared = 2,
                 .first_dense = 0},
                to);
  auto& experts = *to.model.experts;
  to.model.rotary.layout = RotaryLayout::interleaved;
  experts.router = Router::softmax;
  experts.normalize = false;
  // transformers never divides weights by their sum, and no published model asks for it.
  from.require("norm_topk_prob", false);
  from.require("scoring_func", "softmax");
  from.require("mlp_bias", false);
  const auto method = from.text("topk_method", "greedy");
  const auto groups = from.optional_integer("n_group"), active = from.optional_integer("topk_group");
  if (method == "group_limited_greedy") {
    experts.groups = groups.value_or(1);
    experts.active_groups = active.value_or(1);
  } else if (method != "greedy") {
    from.fail("topk_method", "only greedy and group_limited_greedy are supported");
  }
}

void write_deepseek_v2(const Experiment& from, nlohmann::json& to) {
  write_deepseek(from, to);
  to["norm_topk_prob"] = false;
  to["topk_method"] = experts_or_usual(from).groups > 1 ? "group_limited_greedy" : "greedy";
}

void read_deepseek_v3(ForeignConfig& from, Experiment& to) {
  read_deepseek(from,
                {.llama = {.vocab_size = 129280,
                           .max_positions = 4096,
                           .d_model = 7168,
                           .d_ff = 18432,
                           .n_layers = 61,
                           .n_heads = 128},
                 .scale = 2.5},
                to);
  auto& experts = *to.model.experts;
  to.model.rotary.layout =
      from.flag("rope_interleave", true) ? RotaryLayout::interleaved : RotaryLayout::half;
  experts.router = Router::sigmoid;
  experts.choice_bias = true;
  experts.normalize = from.flag("norm_topk_prob", true);
  experts.groups = from.integer("n_group", 8);
  experts.active_groups = from.integer("topk_group", 4);
  if (experts.groups > 1) experts.group_score = GroupScore::top_two;
  from.require("topk_method", "noaux_tc");
  from.require("scoring_func", "sigmoid");
}

void write_deepseek_v3(const Experiment& from, nlohmann::json& to) {
  write_deepseek(from, to);
  to["norm_topk_prob"] = experts_or_usual(from).normalize;
  to["rope_interleave"] = from.model.rotary.layout == RotaryLayout::interleaved;
}

TensorRules deepseek_rules(const Experiment& experiment) {
  const std::string ours = "decoder.layers.{}.", theirs = "model.layers.{}.";
  const std::string attention = theirs + "self_attn.", mlp = theirs + "mlp.";
  TensorRules rules;
  add_llama_frame(experiment, rules);
  add_llama_feed_forward(experiment.model, rules);
  rules.module(ours + "residual.feed_forward_norm", theirs + "post_attention_layernorm");
  rules.module(ours + "self_attention.q", attention + "q_proj");
  rules.module(ours + "self_attention.q_down", attention + "q_a_proj");
  rules.module(ours + "self_attention.q_norm", attention + "q_a_layernorm");
  rules.module(ours + "self_attention.q_up", attention + "q_b_proj");
  rules.module(ours + "self_attention.kv_down", attention + "kv_a_proj_with_mqa");
  rules.module(ours + "self_attention.kv_norm", attention + "kv_a_layernorm");
  rules.module(ours + "self_attention.kv_up", attention + "kv_b_proj");
  rules.module(ours + "self_attention.out", attention + "o_proj");
  if (!experiment.model.experts) return rules;
  add_experts(experiment.model, mlp, {"gate_proj", "up_proj", "down_proj"}, rules);
  rules.tensor(ours + "experts.choice_bias", mlp + "gate.e_score_correction_bias");
  const int64_t d_ff = experiment.model.experts->shared_d_ff.value_or(0);
  for (const std::string name : {"gate", "up", "down"})
    rules.module(ours + "experts.shared." + name, mlp + "shared_experts." + name + "_proj");
  rules.modules({ours + "experts.shared.gate_up"},
                {mlp + "shared_experts.gate_proj", mlp + "shared_experts.up_proj"}, {d_ff, d_ff});
  // The layer that guesses a second token ahead (multi-token prediction), which is not computed here.
  rules.ignore("model.layers." + std::to_string(experiment.model.n_layers) + ".*");
  return rules;
}

}  // namespace

ForeignFamily deepseek_v2_foreign() {
  return {.model_type = "deepseek_v2",
          .doc = "DeepSeek V2 (DeepSeek-AI 2024): latent attention and small experts in groups",
          .classes = {{"DeepseekV2ForCausalLM", "language_modeling"},
                      {"DeepseekV2ForSequenceClassification", "text_classification"},
                      {"DeepseekV2Model", "text_features"}},
          .read = read_deepseek_v2,
          .write = write_deepseek_v2,
          .rules = deepseek_rules};
}

ForeignFamily deepseek_v3_foreign() {
  return {.model_type = "deepseek_v3",
          .doc = "DeepSeek V3 and R1 (DeepSeek-AI 2024): V2 with sigmoids and balance by biases",
          .classes = {{"DeepseekV3ForCausalLM", "language_modeling"},
                      {"DeepseekV3ForSequenceClassification", "text_classification"},
                      {"DeepseekV3Model", "text_features"}},
          .read = read_deepseek_v3,
          .write = write_deepseek_v3,
          .rules = deepseek_rules};
}

}  // namespace zoo
