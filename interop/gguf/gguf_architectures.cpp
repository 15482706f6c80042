#include "interop/gguf/gguf_architectures.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace zoo {
namespace {

using Kind = GgufKeyName::Kind;

bool ends_with_one_of(std::string_view module, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return module.ends_with(end); });
}

StoredForm as_in_transformers(std::string_view, std::string_view) { return StoredForm::same; }

StoredForm form_in_llama(std::string_view module, std::string_view) {
  return ends_with_one_of(module, {".attn_q", ".attn_k"}) ? StoredForm::interleaved_rows : StoredForm::same;
}

StoredForm form_in_gpt2(std::string_view module, std::string_view part) {
  const bool is_matrix =
      part == "weight" && ends_with_one_of(module, {".attn_qkv", ".attn_output", ".ffn_up", ".ffn_down"});
  return is_matrix ? StoredForm::transposed : StoredForm::same;
}

StoredForm form_in_gemma3(std::string_view module, std::string_view) {
  return module.ends_with("_norm") ? StoredForm::plus_one : StoredForm::same;
}

std::vector<GgufKeyName> llama_keys() {
  return {{"embedding_length", "hidden_size"},
          {"feed_forward_length", "intermediate_size"},
          {"block_count", "num_hidden_layers"},
          {"attention.head_count", "num_attention_heads"},
          {"context_length", "max_position_embeddings"},
          {"attention.layer_norm_rms_epsilon", "rms_norm_eps", Kind::number}};
}

std::vector<GgufModuleName> llama_modules() {
  return {{"token_embd", "model.embed_tokens"},
          {"output_norm", "model.norm"},
          {"output", "lm_head"},
          {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
          {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
          {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
          {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
          {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
          {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
          {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
          {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"}};
}

/// With norms of the queries and keys of each head.
std::vector<GgufModuleName> with_head_norms(std::vector<GgufModuleName> modules) {
  modules.push_back({"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"});
  modules.push_back({"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"});
  return modules;
}

std::vector<GgufModuleName> with_norm_before_ffn(std::vector<GgufModuleName> modules) {
  modules.push_back({"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"});
  return modules;
}

GgufArchitecture llama_like(const std::string& name, const std::string& class_name) {
  return {.name = name,
          .model_type = name,
          .class_name = class_name,
          .keys = llama_keys(),
          .modules = with_norm_before_ffn(llama_modules()),
          .fixed = {{"hidden_act", "silu"}},
          .form_of = as_in_transformers};
}

GgufArchitecture llama() {
  auto result = llama_like("llama", "LlamaForCausalLM");
  result.form_of = form_in_llama;
  return result;
}

GgufArchitecture qwen2() {
  auto result = llama_like("qwen2", "Qwen2ForCausalLM");
  result.has_head_width = false;
  return result;
}

GgufArchitecture qwen3() {
  auto result = llama_like("qwen3", "Qwen3ForCausalLM");
  result.modules = with_head_norms(std::move(result.modules));
  return result;
}

GgufArchitecture gemma3() {
  auto keys = llama_keys();
  keys.push_back({"attention.sliding_window", "sliding_window"});
  auto modules = with_head_norms(llama_modules());
  modules.push_back({"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"});
  modules.push_back({"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"});
  modules.push_back({"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"});
  return {.name = "gemma3",
          .model_type = "gemma3_text",
          .class_name = "Gemma3ForCausalLM",
          .keys = std::move(keys),
          .modules = std::move(modules),
          .fixed = {{"hidden_activation", "gelu_pytorch_tanh"}, {"rope_local_base_freq", 10000}},
          .form_of = form_in_gemma3};
}

GgufArchitecture gpt2() {
  return {.name = "gpt2",
          .model_type = "gpt2",
          .class_name = "GPT2LMHeadModel",
          .body = GgufBody::plain_decoder,
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
                      {"blk.{}.attn_qkv", "transformer.h.{}.attn.c_attn"},
                      {"blk.{}.attn_output", "transformer.h.{}.attn.c_proj"},
                      {"blk.{}.ffn_norm", "transformer.h.{}.ln_2"},
                      {"blk.{}.ffn_up", "transformer.h.{}.mlp.c_fc"},
                      {"blk.{}.ffn_down", "transformer.h.{}.mlp.c_proj"}},
          .fixed = {{"activation_function", "gelu_new"}},
          .form_of = form_in_gpt2,
          .has_head_width = false};
}

GgufArchitecture bert() {
  return {.name = "bert",
          .model_type = "bert",
          .class_name = "BertModel",
          .body = GgufBody::encoder,
          .keys = {{"embedding_length", "hidden_size"},
                   {"feed_forward_length", "intermediate_size"},
                   {"block_count", "num_hidden_layers"},
                   {"attention.head_count", "num_attention_heads"},
                   {"context_length", "max_position_embeddings"},
                   {"attention.layer_norm_epsilon", "layer_norm_eps", Kind::number}},
          .modules = {{"token_embd", "bert.embeddings.word_embeddings"},
                      {"position_embd", "bert.embeddings.position_embeddings"},
                      {"token_types", "bert.embeddings.token_type_embeddings"},
                      {"token_embd_norm", "bert.embeddings.LayerNorm"},
                      {"blk.{}.attn_q", "bert.encoder.layer.{}.attention.self.query"},
                      {"blk.{}.attn_k", "bert.encoder.layer.{}.attention.self.key"},
                      {"blk.{}.attn_v", "bert.encoder.layer.{}.attention.self.value"},
                      {"blk.{}.attn_output", "bert.encoder.layer.{}.attention.output.dense"},
                      {"blk.{}.attn_output_norm", "bert.encoder.layer.{}.attention.output.LayerNorm"},
                      {"blk.{}.ffn_up", "bert.encoder.layer.{}.intermediate.dense"},
                      {"blk.{}.ffn_down", "bert.encoder.layer.{}.output.dense"},
                      {"blk.{}.layer_output_norm", "bert.encoder.layer.{}.output.LayerNorm"}},
          .fixed = {{"hidden_act", "gelu"}},
          .form_of = as_in_transformers,
          .has_head_width = false,
          .headless_classes = {"BertForMaskedLM", "BertForPreTraining"},
          .head_modules = {"cls.", "bert.pooler."}};
}

GgufArchitecture t5() {
  return {
      .name = "t5",
      .model_type = "t5",
      .class_name = "T5ForConditionalGeneration",
      .body = GgufBody::encoder_decoder,
      .keys = {{"embedding_length", "d_model"},
               {"feed_forward_length", "d_ff"},
               {"block_count", "num_layers"},
               {"attention.head_count", "num_heads"},
               {"attention.key_length", "d_kv"},
               {"attention.relative_buckets_count", "relative_attention_num_buckets"},
               {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon", Kind::number}},
      .modules = {{"token_embd", "shared"},
                  {"output", "lm_head"},
                  {"enc.output_norm", "encoder.final_layer_norm"},
                  {"enc.blk.{}.attn_norm", "encoder.block.{}.layer.0.layer_norm"},
                  {"enc.blk.{}.attn_q", "encoder.block.{}.layer.0.SelfAttention.q"},
                  {"enc.blk.{}.attn_k", "encoder.block.{}.layer.0.SelfAttention.k"},
                  {"enc.blk.{}.attn_v", "encoder.block.{}.layer.0.SelfAttention.v"},
                  {"enc.blk.{}.attn_o", "encoder.block.{}.layer.0.SelfAttention.o"},
                  {"enc.blk.{}.attn_rel_b", "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias"},
                  {"enc.blk.{}.ffn_norm", "encoder.block.{}.layer.1.layer_norm"},
                  {"enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi", GgufGate::absent},
                  {"enc.blk.{}.ffn_gate", "encoder.block.{}.layer.1.DenseReluDense.wi_0"},
                  {"enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi_1", GgufGate::present},
                  {"enc.blk.{}.ffn_down", "encoder.block.{}.layer.1.DenseReluDense.wo"},
                  {"dec.output_norm", "decoder.final_layer_norm"},
                  {"dec.blk.{}.attn_norm", "decoder.block.{}.layer.0.layer_norm"},
                  {"dec.blk.{}.attn_q", "decoder.block.{}.layer.0.SelfAttention.q"},
                  {"dec.blk.{}.attn_k", "decoder.block.{}.layer.0.SelfAttention.k"},
                  {"dec.blk.{}.attn_v", "decoder.block.{}.layer.0.SelfAttention.v"},
                  {"dec.blk.{}.attn_o", "decoder.block.{}.layer.0.SelfAttention.o"},
                  {"dec.blk.{}.attn_rel_b", "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias"},
                  {"dec.blk.{}.cross_attn_norm", "decoder.block.{}.layer.1.layer_norm"},
                  {"dec.blk.{}.cross_attn_q", "decoder.block.{}.layer.1.EncDecAttention.q"},
                  {"dec.blk.{}.cross_attn_k", "decoder.block.{}.layer.1.EncDecAttention.k"},
                  {"dec.blk.{}.cross_attn_v", "decoder.block.{}.layer.1.EncDecAttention.v"},
                  {"dec.blk.{}.cross_attn_o", "decoder.block.{}.layer.1.EncDecAttention.o"},
                  {"dec.blk.{}.cross_attn_rel_b",
                   "decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias"},
                  {"dec.blk.{}.ffn_norm", "decoder.block.{}.layer.2.layer_norm"},
                  {"dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi", GgufGate::absent},
                  {"dec.blk.{}.ffn_gate", "decoder.block.{}.layer.2.DenseReluDense.wi_0"},
                  {"dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi_1", GgufGate::present},
                  {"dec.blk.{}.ffn_down", "decoder.block.{}.layer.2.DenseReluDense.wo"}},
      .fixed = {{"relative_attention_max_distance", 128}},
      .form_of = as_in_transformers,
      .has_head_width = false};
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The name of a module by the pattern `to` if it is one by `from`.
std::optional<std::string> renamed(std::string_view module, std::string_view from, std::string_view to) {
  const auto at = from.find("{}");
  if (at == from.npos) return module == from ? std::optional(std::string(to)) : std::nullopt;
  const auto before = from.substr(0, at), after = from.substr(at + 2);
  if (!module.starts_with(before) || !module.ends_with(after) ||
      module.size() <= before.size() + after.size())
    return std::nullopt;
  const auto number = module.substr(before.size(), module.size() - before.size() - after.size());
  if (!is_number(number)) return std::nullopt;
  std::string result(to);
  return result.replace(result.find("{}"), 2, number);
}

/// The name of a tensor with the names of modules in two members exchanged.
std::optional<std::string> renamed(const GgufArchitecture& architecture, GgufGate gate,
                                   const std::string& name, std::string_view GgufModuleName::* from,
                                   std::string_view GgufModuleName::* to) {
  const auto dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  const std::string_view module = std::string_view(name).substr(0, dot);
  for (const auto& one : architecture.modules) {
    if (one.gate != GgufGate::any && one.gate != gate) continue;
    if (auto found = renamed(module, one.*from, one.*to)) return *found + name.substr(dot);
  }
  return std::nullopt;
}

}  // namespace

const std::vector<GgufArchitecture>& gguf_architectures() {
  static const std::vector<GgufArchitecture> architectures = {llama(), qwen2(), qwen3(), gemma3(),
                                                              gpt2(),  bert(),  t5()};
  return architectures;
}

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const auto& all = gguf_architectures();
  const auto found = std::ranges::find(all, name, &GgufArchitecture::name);
  return found == all.end() ? nullptr : &*found;
}

const GgufArchitecture* gguf_architecture_of(std::string_view model_type) {
  const auto& all = gguf_architectures();
  const auto found = std::ranges::find(all, model_type, &GgufArchitecture::model_type);
  return found == all.end() ? nullptr : &*found;
}

GgufGate gate_of(const nlohmann::json& config) {
  return config.value("feed_forward_proj", "").starts_with("gated-") ? GgufGate::present : GgufGate::absent;
}

std::optional<std::string> foreign_tensor_name(const GgufArchitecture& architecture, GgufGate gate,
                                               const std::string& stored) {
  return renamed(architecture, gate, stored, &GgufModuleName::stored, &GgufModuleName::foreign);
}

std::optional<std::string> stored_tensor_name(const GgufArchitecture& architecture, GgufGate gate,
                                              const std::string& foreign) {
  return renamed(architecture, gate, foreign, &GgufModuleName::foreign, &GgufModuleName::stored);
}

bool is_in_left_out_head(const GgufArchitecture& architecture, std::string_view foreign) {
  return std::ranges::any_of(architecture.head_modules,
                             [&](std::string_view module) { return foreign.starts_with(module); });
}

}  // namespace zoo
