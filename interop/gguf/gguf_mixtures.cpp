// Decoders whose feed-forward networks are mixtures of experts. The file has one tensor for the matrices of
// all experts.

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/gguf/gguf_families.h"
#include "io/formats/gguf_file.h"

namespace zoo {
namespace {

using Json = nlohmann::json;
using Parts = GgufModuleName::Parts;

/// How a router makes weights of its scores, by its number in a file.
enum class GgufRouter { none = 0, softmax = 1, sigmoid = 2 };

std::vector<GgufModuleName> mixture_frame() {
  auto modules = llama_frame();
  modules.push_back({"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"});
  return modules;
}

std::vector<GgufModuleName> with_experts(std::vector<GgufModuleName> modules) {
  modules.push_back({"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"});
  modules.push_back(
      {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.[].gate_proj", StoredForm::experts});
  modules.push_back({"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.[].up_proj", StoredForm::experts});
  modules.push_back(
      {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.[].down_proj", StoredForm::experts});
  return modules;
}

void add_expert_counts(std::string_view count, GgufArchitecture& to) {
  to.keys.push_back({"expert_count", count});
  to.keys.push_back({"expert_used_count", "num_experts_per_tok"});
}

GgufArchitecture mixtral() {
  auto result = llama_like("llama", "mixtral", "MixtralForCausalLM");
  add_expert_counts("num_local_experts", result);
  result.modules = with_interleaved_rows(mixture_frame());
  result.modules.push_back({"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"});
  result.modules.push_back(
      {"blk.{}.ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.[].w1", StoredForm::experts});
  result.modules.push_back(
      {"blk.{}.ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.[].w3", StoredForm::experts});
  result.modules.push_back(
      {"blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.[].w2", StoredForm::experts});
  result.fixed.push_back({"sliding_window", nullptr});
  result.head_width = GgufHeadWidth::of_key;
  result.is_meant = [](const GgufKeys& keys) { return keys.integer("llama.expert_count", 0) != 0; };
  return result;
}

GgufArchitecture qwen2_moe() {
  auto result = llama_like("qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM");
  add_expert_counts("num_experts", result);
  result.keys.push_back({"expert_feed_forward_length", "moe_intermediate_size"});
  result.keys.push_back({"expert_shared_feed_forward_length", "shared_expert_intermediate_size"});
  result.modules = with_experts(mixture_frame());
  const std::vector<GgufModuleName> shared{
      {"blk.{}.ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate", StoredForm::flat},
      {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"},
      {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"},
      {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"}};
  result.modules.insert(result.modules.end(), shared.begin(), shared.end());
  result.fixed.push_back({"norm_topk_prob", false});
  result.tied_output = GgufTiedOutput::always_there;
  result.read = [](const GgufKeys&, const GgufTensorFacts& facts, Json& config) {
    config["qkv_bias"] = facts.has("blk.0.attn_q.bias");
  };
  return result;
}

GgufArchitecture qwen3_moe() {
  auto result = llama_like("qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM");
  add_expert_counts("num_experts", result);
  result.keys.push_back({"expert_feed_forward_length", "moe_intermediate_size"});
  result.modules = with_experts(with_qk_norms(mixture_frame()));
  result.fixed.push_back({"norm_topk_prob", true});
  result.head_width = GgufHeadWidth::of_key;
  return result;
}

GgufArchitecture olmoe() {
  auto result = llama_like("olmoe", "olmoe", "OlmoeForCausalLM");
  add_expert_counts("num_experts", result);
  result.modules = with_experts(with_qk_norms(mixture_frame()));
  result.fixed.push_back({"norm_topk_prob", false});
  result.tied_output = GgufTiedOutput::always_there;
  result.write = [](const Json& config, const GgufKeyWriter&) {
    if (config.at("num_key_value_heads") != config.at("num_attention_heads"))
      throw ConfigError("llama.cpp runs OLMoE only with as many heads of keys as of queries");
  };
  return result;
}

/// The window and its turns, which llama.cpp takes for granted, and positions without rounded limits: files
/// do not say that gpt-oss has them so.
void read_gpt_oss(const GgufKeys& from, const GgufTensorFacts&, Json& config) {
  const char* const pattern = "gpt-oss.attention.sliding_window_pattern";
  if (from.integer(pattern, 2) != 2) from.fail(pattern, "only a window in every second layer is supported");
  const auto width = from.integer("gpt-oss.expert_feed_forward_length");
  if (from.integer("gpt-oss.feed_forward_length", width) != width)
    from.fail("gpt-oss.feed_forward_length", "is another one than that of the experts");
  config["intermediate_size"] = width;
  auto& scaling = config["rope_scaling"];
  if (!scaling.is_object()) scaling = {{"rope_type", "default"}};
  if (scaling["rope_type"] == "yarn") scaling["truncate"] = false;
}

GgufArchitecture gpt_oss() {
  auto result = llama_like("gpt-oss", "gpt_oss", "GptOssForCausalLM");
  std::erase_if(result.keys, [](const auto& key) { return key.stored == "feed_forward_length"; });
  add_expert_counts("num_local_experts", result);
  result.keys.push_back({"attention.sliding_window", "sliding_window"});
  result.modules = llama_frame();
  const std::vector<GgufModuleName> more{
      {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
      {.stored = "blk.{}.attn_sinks",
       .foreign = "model.layers.{}.self_attn.sinks",
       .parts = Parts::of_tensor},
      {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.router"},
      {.stored = "blk.{}.ffn_gate_exps",
       .foreign = "model.layers.{}.mlp.experts.gate_up_proj",
       .form = StoredForm::even_columns,
       .parts = Parts::of_tensor},
      {.stored = "blk.{}.ffn_up_exps",
       .foreign = "model.layers.{}.mlp.experts.gate_up_proj",
       .form = StoredForm::odd_columns,
       .parts = Parts::of_tensor},
      {.stored = "blk.{}.ffn_down_exps",
       .foreign = "model.layers.{}.mlp.experts.down_proj",
       .form = StoredForm::columns,
       .parts = Parts::of_tensor}};
  result.modules.insert(result.modules.end(), more.begin(), more.end());
  result.fixed.push_back({"attention_bias", true});
  result.head_width = GgufHeadWidth::of_key;
  result.tied_output = GgufTiedOutput::always_there;
  result.read = read_gpt_oss;
  result.write = [](const Json& config, const GgufKeyWriter& to) {
    to.integer("feed_forward_length", config.at("intermediate_size"));
    to.integer("expert_feed_forward_length", config.at("intermediate_size"));
  };
  return result;
}

std::string deepseek_key(std::string_view name) { return "deepseek2." + std::string(name); }

/// Files have the widths of heads as they are, and where keys and values are stored compressed, those of the
/// one head of what is stored.
void read_latent_widths(const GgufKeys& from, const GgufTensorFacts& facts, Json& config) {
  const bool is_older = facts.has("blk.0.attn_kv_b.weight");
  const auto suffix = is_older ? std::string() : std::string("_mla");
  const auto key_length = deepseek_key("attention.key_length" + suffix);
  const auto value_length = deepseek_key("attention.value_length" + suffix);
  const int64_t turned = config["qk_rope_head_dim"], rank = config["kv_lora_rank"];
  config["qk_nope_head_dim"] = from.integer(key_length) - turned;
  config["v_head_dim"] = from.integer(value_length);
  const int64_t n_heads = config["num_attention_heads"];
  const auto check = [&](std::string_view name, int64_t wanted) {
    const auto key = deepseek_key(name);
    if (from.integer(key, wanted) != wanted) from.fail(key, fmt::format("only {} is supported", wanted));
  };
  check("attention.head_count_kv", is_older ? n_heads : 1);
  if (is_older) return;
  check("attention.key_length", rank + turned);
  check("attention.value_length", rank);
}

GgufRouter router_of(const GgufKeys& keys) {
  return static_cast<GgufRouter>(keys.integer(deepseek_key("expert_gating_func"), 0));
}

void read_deepseek(const GgufKeys& from, const GgufTensorFacts& facts, Json& config) {
  if (router_of(from) > GgufRouter::sigmoid)
    from.fail(deepseek_key("expert_gating_func"), "only 1 (softmax) and 2 (sigmoid) are supported");
  const auto rank = deepseek_key("attention.q_lora_rank");
  config["q_lora_rank"] = from.has(rank) ? Json(from.integer(rank)) : Json(nullptr);
  read_latent_widths(from, facts, config);
  config["num_key_value_heads"] = config["num_attention_heads"];
  config["routed_scaling_factor"] = from.number(deepseek_key("expert_weights_scale"), 1);
  config["norm_topk_prob"] = from.flag(deepseek_key("expert_weights_norm"), false);
  // The file has it times 0.1.
  const double factor = from.number(deepseek_key("rope.scaling.yarn_log_multiplier"), 0);
  auto& scaling = config["rope_scaling"];
  if (factor != 0 && scaling.is_object())
    scaling["mscale"] = scaling["mscale_all_dim"] = shortest(static_cast<float>(factor * 10));
}

void write_deepseek(const Json& config, const GgufKeyWriter& to, GgufRouter router) {
  const int64_t plain = config.at("qk_nope_head_dim"), turned = config.at("qk_rope_head_dim");
  const int64_t rank = config.at("kv_lora_rank"), value = config.at("v_head_dim");
  if (config.at("n_shared_experts") == 0)
    throw ConfigError("llama.cpp runs DeepSeek only with a network for every token (shared_d_ff)");
  const auto q_rank = config.value("q_lora_rank", Json());
  // It tells models whose queries are not compressed by their number of layers.
  const int64_t n_layers = config.at("num_hidden_layers");
  if (q_rank.is_null() != (n_layers == 26 || n_layers == 27)) {
    throw ConfigError(
        "llama.cpp runs DeepSeek with 26 or 27 layers without q_rank, and with other numbers of layers with "
        "it");
  }
  if (!q_rank.is_null()) to.integer("attention.q_lora_rank", q_rank);
  to.integer("attention.head_count_kv", 1);
  to.integer("attention.key_length", rank + turned);
  to.integer("attention.value_length", rank);
  to.integer("attention.key_length_mla", plain + turned);
  to.integer("attention.value_length_mla", value);
  to.number("expert_weights_scale", config.at("routed_scaling_factor"));
  to.flag("expert_weights_norm", config.at("norm_topk_prob"));
  to.integer("expert_gating_func", static_cast<int64_t>(router));
  const auto scaling = config.value("rope_scaling", Json());
  if (scaling.is_object() && scaling.contains("mscale_all_dim"))
    to.number("rope.scaling.yarn_log_multiplier", 0.1 * scaling["mscale_all_dim"].get<double>());
}

/// What both families add to `result`, an architecture of Llama's keys and modules.
GgufArchitecture deepseek(GgufArchitecture result) {
  add_expert_counts("n_routed_experts", result);
  result.keys.push_back({"expert_feed_forward_length", "moe_intermediate_size"});
  result.keys.push_back({"expert_shared_count", "n_shared_experts"});
  result.keys.push_back({"leading_dense_block_count", "first_k_dense_replace"});
  result.keys.push_back({"attention.kv_lora_rank", "kv_lora_rank"});
  std::erase_if(result.modules, [](const auto& module) {
    return module.stored.ends_with(".attn_k") || module.stored.ends_with(".attn_v");
  });
  result.modules = with_experts(std::move(result.modules));
  const std::vector<GgufModuleName> more{
      {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"},
      {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"},
      {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"},
      {"blk.{}.attn_q_a", "model.layers.{}.self_attn.q_a_proj"},
      {"blk.{}.attn_q_a_norm", "model.layers.{}.self_attn.q_a_layernorm"},
      {"blk.{}.attn_q_b", "model.layers.{}.self_attn.q_b_proj"},
      {"blk.{}.attn_kv_a_mqa", "model.layers.{}.self_attn.kv_a_proj_with_mqa"},
      {"blk.{}.attn_kv_a_norm", "model.layers.{}.self_attn.kv_a_layernorm"},
      {"blk.{}.attn_k_b", "model.layers.{}.self_attn.kv_b_proj", StoredForm::latent_keys},
      {"blk.{}.attn_v_b", "model.layers.{}.self_attn.kv_b_proj", StoredForm::latent_values},
      {.stored = "blk.{}.attn_kv_b",
       .foreign = "model.layers.{}.self_attn.kv_b_proj",
       .use = GgufModuleName::Use::read},
      {.stored = "blk.{}.exp_probs_b",
       .foreign = "model.layers.{}.mlp.gate.e_score_correction",
       .parts = Parts::of_tensor}};
  result.modules.insert(result.modules.end(), more.begin(), more.end());
  result.head_width = GgufHeadWidth::latent;
  result.rotary.width = "qk_rope_head_dim";
  return result;
}

GgufArchitecture deepseek_v2() {
  auto result = deepseek(llama_like("deepseek2", "deepseek_v2", "DeepseekV2ForCausalLM"));
  // Groups are chosen there by their two best experts, and in DeepSeek V2 by the best one.
  result.fixed.push_back({"topk_method", "greedy"});
  result.is_meant = [](const GgufKeys& keys) {
    return router_of(keys) == GgufRouter::none || router_of(keys) == GgufRouter::softmax;
  };
  result.read = [](const GgufKeys& from, const GgufTensorFacts& facts, Json& config) {
    read_deepseek(from, facts, config);
    const auto groups = deepseek_key("expert_group_count");
    if (from.integer(groups, 0) > 1)
      from.fail(groups, "llama.cpp chooses groups of experts in another way than DeepSeek V2");
    from.integer(deepseek_key("expert_group_used_count"), 0);
  };
  result.write = [](const Json& config, const GgufKeyWriter& to) {
    write_deepseek(config, to, GgufRouter::softmax);
  };
  return result;
}

GgufArchitecture deepseek_v3() {
  auto result = deepseek(llama_like("deepseek2", "deepseek_v3", "DeepseekV3ForCausalLM"));
  result.is_meant = [](const GgufKeys& keys) { return router_of(keys) == GgufRouter::sigmoid; };
  result.read = [](const GgufKeys& from, const GgufTensorFacts& facts, Json& config) {
    read_deepseek(from, facts, config);
    config["n_group"] = std::max<int64_t>(from.integer(deepseek_key("expert_group_count"), 1), 1);
    config["topk_group"] = std::max<int64_t>(from.integer(deepseek_key("expert_group_used_count"), 1), 1);
  };
  result.write = [](const Json& config, const GgufKeyWriter& to) {
    write_deepseek(config, to, GgufRouter::sigmoid);
    to.integer("expert_group_count", config.at("n_group"));
    to.integer("expert_group_used_count", config.at("topk_group"));
  };
  return result;
}

}  // namespace

std::vector<GgufArchitecture> gguf_mixtures() {
  return {mixtral(), qwen2_moe(), qwen3_moe(), olmoe(), gpt_oss(), deepseek_v2(), deepseek_v3()};
}

}  // namespace zoo
