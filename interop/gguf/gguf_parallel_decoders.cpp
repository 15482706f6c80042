// Decoders whose matrices of attention are stacked, or whose sub-layers read the same vectors.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "interop/gguf/gguf_families.h"

namespace zoo {
namespace {

using Json = nlohmann::json;
using Kind = GgufKeyName::Kind;

GgufArchitecture gptneox() {
  auto keys = layer_norm_keys("layer_norm_eps");
  keys.push_back({"use_parallel_residual", "use_parallel_residual", Kind::flag});
  return {
      .name = "gptneox",
      .model_type = "gpt_neox",
      .class_name = "GPTNeoXForCausalLM",
      .keys = std::move(keys),
      .modules = {{"token_embd", "gpt_neox.embed_in"},
                  {"output_norm", "gpt_neox.final_layer_norm"},
                  {"output", "embed_out"},
                  {"blk.{}.attn_norm", "gpt_neox.layers.{}.input_layernorm"},
                  {"blk.{}.attn_qkv", "gpt_neox.layers.{}.attention.query_key_value", StoredForm::sections},
                  {"blk.{}.attn_output", "gpt_neox.layers.{}.attention.dense"},
                  {"blk.{}.ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm"},
                  {"blk.{}.ffn_up", "gpt_neox.layers.{}.mlp.dense_h_to_4h"},
                  {"blk.{}.ffn_down", "gpt_neox.layers.{}.mlp.dense_4h_to_h"}},
      .fixed = {{"hidden_act", "gelu"}, {"attention_bias", true}},
      .rotary = {.theta = "rotary_emb_base", .fraction = "rotary_pct"},
      .tied_output = GgufTiedOutput::always_there};
}

/// BLOOM and MPT have no key for the feed-forward network, which is four times as wide as the model.
void read_wide_network(const GgufKeys& from, const std::string& name, const Json& d_model) {
  const auto key = name + ".feed_forward_length";
  if (from.integer(key) != 4 * d_model.get<int64_t>())
    from.fail(key, "a feed-forward network that is not four times as wide as the model is not supported");
}

GgufArchitecture bloom() {
  return {.name = "bloom",
          .model_type = "bloom",
          .class_name = "BloomForCausalLM",
          .keys = {{"embedding_length", "hidden_size"},
                   {"block_count", "n_layer"},
                   {"attention.head_count", "n_head"},
                   {"context_length", "seq_length"},
                   {"attention.layer_norm_epsilon", "layer_norm_epsilon", Kind::number}},
          .modules = {{"token_embd", "transformer.word_embeddings"},
                      {"token_embd_norm", "transformer.word_embeddings_layernorm"},
                      {"output_norm", "transformer.ln_f"},
                      {"output", "lm_head"},
                      {"blk.{}.attn_norm", "transformer.h.{}.input_layernorm"},
                      {"blk.{}.attn_qkv", "transformer.h.{}.self_attention.query_key_value",
                       StoredForm::sections},
                      {"blk.{}.attn_output", "transformer.h.{}.self_attention.dense"},
                      {"blk.{}.ffn_norm", "transformer.h.{}.post_attention_layernorm"},
                      {"blk.{}.ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
                      {"blk.{}.ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"}},
          .read = [](const GgufKeys& from, const GgufTensorFacts&,
                     Json& config) { read_wide_network(from, "bloom", config["hidden_size"]); },
          .write =
              [](const Json& config, const GgufKeyWriter& to) {
                to.integer("feed_forward_length", 4 * config.at("hidden_size").get<int64_t>());
              }};
}

void read_mpt(const GgufKeys& from, const GgufTensorFacts&, Json& config) {
  read_wide_network(from, "mpt", config["d_model"]);
  const double clip = from.number("mpt.attention.clamp_kqv", 0);
  config["attn_config"] = {{"alibi", true}, {"clip_qkv", clip > 0 ? Json(clip) : Json(nullptr)}};
  constexpr double usual = 8;
  const char* const bias = "mpt.attention.max_alibi_bias";
  if (from.number(bias, 0) != usual) from.fail(bias, "only 8 is supported");
}

void write_mpt(const Json& config, const GgufKeyWriter& to) {
  to.integer("feed_forward_length", 4 * config.at("d_model").get<int64_t>());
  to.number("attention.max_alibi_bias", 8);
  const auto clip = config.at("attn_config").value("clip_qkv", Json());
  if (!clip.is_null()) to.number("attention.clamp_kqv", clip);
}

GgufArchitecture mpt() {
  return {.name = "mpt",
          .model_type = "mpt",
          .class_name = "MptForCausalLM",
          .keys = {{"embedding_length", "d_model"},
                   {"block_count", "n_layers"},
                   {"attention.head_count", "n_heads"},
                   {"context_length", "max_seq_len"},
                   {"attention.layer_norm_epsilon", "layer_norm_epsilon", Kind::number}},
          .modules = {{"token_embd", "transformer.wte"},
                      {"output_norm", "transformer.norm_f"},
                      {"output", "lm_head"},
                      {"blk.{}.attn_norm", "transformer.blocks.{}.norm_1"},
                      {"blk.{}.attn_qkv", "transformer.blocks.{}.attn.Wqkv"},
                      {"blk.{}.attn_output", "transformer.blocks.{}.attn.out_proj"},
                      {"blk.{}.ffn_norm", "transformer.blocks.{}.norm_2"},
                      {"blk.{}.ffn_up", "transformer.blocks.{}.ffn.up_proj"},
                      {"blk.{}.ffn_down", "transformer.blocks.{}.ffn.down_proj"}},
          .read = read_mpt,
          .write = write_mpt};
}

/// The first generation (7B) has one norm in a layer and one head of keys, the second one (40B, 11B) groups.
void read_falcon(const GgufKeys&, const GgufTensorFacts& facts, Json& config) {
  const bool has_two_norms = facts.has("blk.0.attn_norm_2.weight");
  const bool is_new = has_two_norms || config["num_kv_heads"] != 1;
  config["new_decoder_architecture"] = is_new;
  config["multi_query"] = !is_new;
  config["parallel_attn"] = true;
  if (is_new) config["num_ln_in_parallel_attn"] = has_two_norms ? 2 : 1;
}

GgufArchitecture falcon() {
  return {.name = "falcon",
          .model_type = "falcon",
          .class_name = "FalconForCausalLM",
          .keys = {{"embedding_length", "hidden_size"},
                   {"feed_forward_length", "ffn_hidden_size"},
                   {"block_count", "num_hidden_layers"},
                   {"attention.head_count", "num_attention_heads"},
                   {"context_length", "max_position_embeddings"},
                   {"attention.layer_norm_epsilon", "layer_norm_epsilon", Kind::number}},
          .modules = {{"token_embd", "transformer.word_embeddings"},
                      {"output_norm", "transformer.ln_f"},
                      {"output", "lm_head"},
                      // A layer has one norm, or these two.
                      {"blk.{}.attn_norm", "transformer.h.{}.input_layernorm", StoredForm::same,
                       GgufVariant::simple},
                      {"blk.{}.attn_norm", "transformer.h.{}.ln_mlp", StoredForm::same, GgufVariant::full},
                      {"blk.{}.attn_norm_2", "transformer.h.{}.ln_attn"},
                      {"blk.{}.attn_qkv", "transformer.h.{}.self_attention.query_key_value",
                       StoredForm::sections},
                      {"blk.{}.attn_output", "transformer.h.{}.self_attention.dense"},
                      {"blk.{}.ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
                      {"blk.{}.ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"}},
          .fixed = {{"activation", "gelu"}, {"bias", false}, {"alibi", false}},
          .kv_heads = "num_kv_heads",
          .rotary = {.theta = "rope_theta"},
          .read = read_falcon};
}

GgufArchitecture phi2() {
  auto result = llama_like("phi2", "phi", "PhiForCausalLM");
  result.keys = layer_norm_keys("layer_norm_eps");
  result.modules = {{"token_embd", "model.embed_tokens"},
                    {"output_norm", "model.final_layernorm"},
                    {"output", "lm_head"},
                    {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
                    {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
                    {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
                    {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
                    {"blk.{}.attn_output", "model.layers.{}.self_attn.dense"},
                    {"blk.{}.ffn_up", "model.layers.{}.mlp.fc1"},
                    {"blk.{}.ffn_down", "model.layers.{}.mlp.fc2"}};
  result.fixed = {{"hidden_act", "gelu_new"}};
  result.rotary.fraction = "partial_rotary_factor";
  result.tied_output = GgufTiedOutput::always_there;
  return result;
}

/// Attention and gates stacked as transformers stacks them.
std::vector<GgufModuleName> with_stacked_gate(std::vector<GgufModuleName> modules) {
  modules.push_back({"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"});
  modules.push_back({"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"});
  modules.push_back({"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"});
  return modules;
}

GgufArchitecture phi3() {
  auto result = llama_like("phi3", "phi3", "Phi3ForCausalLM");
  result.modules = with_stacked_gate(llama_frame());
  std::erase_if(result.modules, [](const auto& module) {
    return module.stored.ends_with(".attn_q") || module.stored.ends_with(".attn_k") ||
           module.stored.ends_with(".attn_v");
  });
  result.modules.push_back({"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"});
  result.rotary.fraction = "partial_rotary_factor";
  result.read = [](const GgufKeys& from, const GgufTensorFacts&, Json& config) {
    const int64_t window = from.integer("phi3.attention.sliding_window", 0);
    config["sliding_window"] = window > 0 ? Json(window) : Json(nullptr);
    // Files without other frequencies for long texts say it, too.
    const auto original = from.integer("phi3.rope.scaling.original_context_length",
                                       config["max_position_embeddings"].get<int64_t>());
    config["original_max_position_embeddings"] = original;
  };
  result.write = [](const Json& config, const GgufKeyWriter&) {
    if (!config.value("sliding_window", Json()).is_null())
      throw ConfigError("llama.cpp runs Phi-3 without its windows: set model.attention to full to write it");
  };
  return result;
}

/// Biases of queries, keys and values, which models may have or not.
void read_qkv_bias(const GgufKeys&, const GgufTensorFacts& facts, Json& config) {
  config["attention_bias"] = facts.has("blk.0.attn_q.bias");
}

GgufArchitecture glm() {
  auto result = llama_like("chatglm", "glm", "GlmForCausalLM");
  result.modules = with_stacked_gate(llama_frame());
  result.rotary.fraction = "partial_rotary_factor";
  result.read = [](const GgufKeys& from, const GgufTensorFacts& facts, Json& config) {
    read_qkv_bias(from, facts, config);
    config["head_dim"] = config["hidden_size"].get<int64_t>() /
                         std::max<int64_t>(config["num_attention_heads"].get<int64_t>(), 1);
  };
  return result;
}

GgufArchitecture glm4() {
  auto result = llama_like("glm4", "glm4", "Glm4ForCausalLM");
  result.modules = with_stacked_gate(llama_frame());
  result.modules.push_back({"blk.{}.post_attention_norm", "model.layers.{}.post_self_attn_layernorm"});
  result.modules.push_back({"blk.{}.post_ffw_norm", "model.layers.{}.post_mlp_layernorm"});
  result.head_width = GgufHeadWidth::of_key;
  result.rotary.fraction = "partial_rotary_factor";
  result.read = read_qkv_bias;
  return result;
}

/// Command R's modules. Its output is always the matrix of the embeddings.
std::vector<GgufModuleName> cohere_modules() {
  auto modules = llama_modules();
  std::erase_if(modules, [](const auto& module) {
    return module.stored == "output" || module.stored.ends_with(".ffn_norm");
  });
  return modules;
}

GgufArchitecture command_r() {
  auto result = llama_like("command-r", "cohere", "CohereForCausalLM");
  result.keys = layer_norm_keys("layer_norm_eps");
  result.keys.push_back({"logit_scale", "logit_scale", Kind::number});
  result.modules = with_qk_norms(cohere_modules());
  result.read = [](const GgufKeys&, const GgufTensorFacts& facts, Json& config) {
    config["use_qk_norm"] = facts.has("blk.0.attn_q_norm.weight");
  };
  result.write = [](const Json& config, const GgufKeyWriter&) {
    constexpr int64_t least = 64;
    if (config.value("use_qk_norm", false) && config.at("num_hidden_layers") < least) {
      throw ConfigError(fmt::format(
          "llama.cpp runs Command R with norms of queries and keys only from {} layers on", least));
    }
  };
  return result;
}

GgufArchitecture cohere2() {
  auto result = llama_like("cohere2", "cohere2", "Cohere2ForCausalLM");
  result.keys = layer_norm_keys("layer_norm_eps");
  result.keys.push_back({"logit_scale", "logit_scale", Kind::number});
  result.keys.push_back({"attention.sliding_window", "sliding_window"});
  result.modules = cohere_modules();
  result.read = [](const GgufKeys& from, const GgufTensorFacts&, Json& config) {
    config["sliding_window_pattern"] = from.integer("cohere2.attention.sliding_window_pattern", 4);
  };
  return result;
}

}  // namespace

std::vector<GgufArchitecture> gguf_parallel_decoders() {
  return {gptneox(), bloom(), mpt(), falcon(), phi2(), phi3(), glm(), glm4(), command_r(), cohere2()};
}

}  // namespace zoo
