// GPT-2, Llama and decoders that change one thing or two of it.

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "interop/gguf/gguf_families.h"

namespace zoo {

using Json = nlohmann::json;
using Kind = GgufKeyName::Kind;

namespace {

std::vector<GgufKeyName> sizes() {
  return {{"embedding_length", "hidden_size"},
          {"feed_forward_length", "intermediate_size"},
          {"block_count", "num_hidden_layers"},
          {"attention.head_count", "num_attention_heads"},
          {"context_length", "max_position_embeddings"}};
}

}  // namespace

std::vector<GgufKeyName> llama_keys() {
  auto keys = sizes();
  keys.push_back({"attention.layer_norm_rms_epsilon", "rms_norm_eps", Kind::number});
  return keys;
}

std::vector<GgufKeyName> layer_norm_keys(std::string_view eps) {
  auto keys = sizes();
  keys.push_back({"attention.layer_norm_epsilon", eps, Kind::number});
  return keys;
}

std::vector<GgufModuleName> llama_frame() {
  return {{"token_embd", "model.embed_tokens"},
          {"output_norm", "model.norm"},
          {"output", "lm_head"},
          {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
          {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
          {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
          {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
          {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"}};
}

namespace {

std::vector<GgufModuleName> with_gated_network(std::vector<GgufModuleName> modules) {
  modules.push_back({"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"});
  modules.push_back({"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"});
  modules.push_back({"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"});
  return modules;
}

}  // namespace

std::vector<GgufModuleName> llama_modules() {
  auto modules = with_gated_network(llama_frame());
  modules.push_back({"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"});
  return modules;
}

std::vector<GgufModuleName> with_interleaved_rows(std::vector<GgufModuleName> modules) {
  for (auto& module : modules) {
    if (module.stored.ends_with(".attn_q") || module.stored.ends_with(".attn_k"))
      module.form = StoredForm::interleaved_rows;
  }
  return modules;
}

std::vector<GgufModuleName> with_qk_norms(std::vector<GgufModuleName> modules) {
  modules.push_back({"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"});
  modules.push_back({"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"});
  return modules;
}

GgufArchitecture llama_like(const std::string& name, const std::string& model_type,
                            const std::string& class_name) {
  return {.name = name,
          .model_type = model_type,
          .class_name = class_name,
          .keys = llama_keys(),
          .modules = llama_modules(),
          .fixed = {{"hidden_act", "silu"}},
          .kv_heads = "num_key_value_heads",
          .rotary = {.theta = "rope_theta"}};
}

namespace {

GgufArchitecture llama() {
  auto result = llama_like("llama", "llama", "LlamaForCausalLM");
  result.modules = with_interleaved_rows(std::move(result.modules));
  result.head_width = GgufHeadWidth::of_key;
  result.is_meant = [](const GgufKeys& keys) { return keys.integer("llama.expert_count", 0) == 0; };
  return result;
}

GgufArchitecture qwen2() { return llama_like("qwen2", "qwen2", "Qwen2ForCausalLM"); }

GgufArchitecture qwen3() {
  auto result = llama_like("qwen3", "qwen3", "Qwen3ForCausalLM");
  result.modules = with_qk_norms(std::move(result.modules));
  result.head_width = GgufHeadWidth::of_key;
  return result;
}

/// llama.cpp's rule for the scale of attention: 1/√Dh, and in the largest model 1/√(D/H).
void read_gemma3(const GgufKeys& from, const GgufTensorFacts&, Json& config) {
  constexpr int64_t layers_of_largest = 62;
  const int64_t width = config["hidden_size"], n_heads = config["num_attention_heads"];
  const bool is_largest = config["num_hidden_layers"] == layers_of_largest;
  config["query_pre_attn_scalar"] =
      is_largest ? width / std::max<int64_t>(n_heads, 1) : config["head_dim"].get<int64_t>();
  const char* const pattern = "gemma3.attention.sliding_window_pattern";
  if (from.has(pattern)) config["sliding_window_pattern"] = from.integer(pattern);
}

GgufArchitecture gemma3() {
  auto result = llama_like("gemma3", "gemma3_text", "Gemma3ForCausalLM");
  result.keys.push_back({"attention.sliding_window", "sliding_window"});
  result.modules = with_qk_norms(with_gated_network(llama_frame()));
  result.modules.push_back({"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"});
  result.modules.push_back({"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"});
  result.modules.push_back({"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"});
  for (auto& module : result.modules) {
    if (module.stored.ends_with("_norm")) module.form = StoredForm::plus_one;
  }
  result.fixed = {{"hidden_activation", "gelu_pytorch_tanh"}, {"rope_local_base_freq", 10000}};
  result.head_width = GgufHeadWidth::of_key;
  result.read = read_gemma3;
  return result;
}

GgufArchitecture gpt2() {
  return {.name = "gpt2",
          .model_type = "gpt2",
          .class_name = "GPT2LMHeadModel",
          .keys = {{"embedding_length", "n_embd"},
                   {"feed_forward_length", "n_inner"},
                   {"block_count", "n_layer"},
                   {"attention.head_count", "n_head"},
                   {"context_length", "n_positions"},
                   {"attention.layer_norm_epsilon", "layer_norm_epsilon", Kind::number}},
          .modules = {{"token_embd", "transformer.wte"},
                      {"position_embd", "transformer.wpe"},
                      {"output_norm", "transformer.ln_f"},
                      {"output", "lm_head"},
                      {"blk.{}.attn_norm", "transformer.h.{}.ln_1"},
                      {"blk.{}.attn_qkv", "transformer.h.{}.attn.c_attn", StoredForm::transposed},
                      {"blk.{}.attn_output", "transformer.h.{}.attn.c_proj", StoredForm::transposed},
                      {"blk.{}.ffn_norm", "transformer.h.{}.ln_2"},
                      {"blk.{}.ffn_up", "transformer.h.{}.mlp.c_fc", StoredForm::transposed},
                      {"blk.{}.ffn_down", "transformer.h.{}.mlp.c_proj", StoredForm::transposed}},
          .fixed = {{"activation_function", "gelu_new"}},
          .tied_output = GgufTiedOutput::often_there};
}

GgufArchitecture olmo() {
  auto result = llama_like("olmo", "olmo", "OlmoForCausalLM");
  result.keys = sizes();
  result.modules = with_interleaved_rows(std::move(result.modules));
  result.read = [](const GgufKeys& from, const GgufTensorFacts&, Json& config) {
    constexpr double eps = 1e-5;  // of transformers, which has no key for it
    const char* const key = "olmo.attention.layer_norm_epsilon";
    if (from.number(key) != eps) from.fail(key, "only 1e-05 is supported");
    const double clip = from.number("olmo.attention.clamp_kqv", 0);
    config["clip_qkv"] = clip > 0 ? Json(clip) : Json(nullptr);
  };
  result.write = [](const Json& config, const GgufKeyWriter& to) {
    to.number("attention.layer_norm_epsilon", 1e-5);
    if (const auto clip = config.value("clip_qkv", Json()); !clip.is_null())
      to.number("attention.clamp_kqv", clip);
  };
  return result;
}

GgufArchitecture olmo2() {
  auto result = llama_like("olmo2", "olmo2", "Olmo2ForCausalLM");
  result.modules = with_qk_norms(with_gated_network(llama_frame()));
  result.modules.push_back({"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"});
  result.modules.push_back({"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"});
  result.tied_output = GgufTiedOutput::always_there;
  return result;
}

GgufArchitecture smollm3() {
  auto result = llama_like("smollm3", "smollm3", "SmolLM3ForCausalLM");
  result.modules = with_interleaved_rows(std::move(result.modules));
  result.fixed.push_back({"no_rope_layer_interval", 4});
  result.fixed.push_back({"use_sliding_window", false});
  return result;
}

GgufArchitecture granite() {
  auto result = llama_like("granite", "granite", "GraniteForCausalLM");
  result.modules = with_interleaved_rows(std::move(result.modules));
  result.keys.push_back({"logit_scale", "logits_scaling", Kind::number});
  result.read = [](const GgufKeys& from, const GgufTensorFacts&, Json& config) {
    config["residual_multiplier"] = from.number("granite.residual_scale", 1);
    config["embedding_multiplier"] = from.number("granite.embedding_scale", 1);
    const double width = config["hidden_size"], n_heads = config["num_attention_heads"];
    config["attention_multiplier"] =
        from.number("granite.attention.scale", 1 / std::sqrt(width / std::max(n_heads, 1.0)));
    // A file says so that no layer has positions.
    const char* const turned = "granite.rope.scaling.finetuned";
    if (!from.flag(turned, true)) from.fail(turned, "a model without positions is not supported");
  };
  result.write = [](const Json& config, const GgufKeyWriter& to) {
    to.number("residual_scale", config.at("residual_multiplier"));
    to.number("embedding_scale", config.at("embedding_multiplier"));
    to.number("attention.scale", config.at("attention_multiplier"));
  };
  return result;
}

GgufArchitecture starcoder2() {
  auto result = llama_like("starcoder2", "starcoder2", "Starcoder2ForCausalLM");
  result.keys = layer_norm_keys("norm_epsilon");
  result.modules = llama_frame();
  result.modules.push_back({"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"});
  result.modules.push_back({"blk.{}.ffn_up", "model.layers.{}.mlp.c_fc"});
  result.modules.push_back({"blk.{}.ffn_down", "model.layers.{}.mlp.c_proj"});
  result.fixed = {{"hidden_act", "gelu_pytorch_tanh"}, {"use_bias", true}, {"sliding_window", nullptr}};
  return result;
}

}  // namespace

std::vector<GgufArchitecture> gguf_llama_kindred() {
  return {llama(), qwen2(), qwen3(), gemma3(), gpt2(), olmo(), olmo2(), smollm3(), granite(), starcoder2()};
}

}  // namespace zoo
