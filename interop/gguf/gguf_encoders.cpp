// Encoders, which are there for their vectors, and T5.

#include <fmt/format.h>

#include "base/error.h"
#include "interop/gguf/gguf_families.h"

namespace zoo {
namespace {

using Json = nlohmann::json;
using Kind = GgufKeyName::Kind;

/// The number of segments, A and B of a pair, stands with the tokenizer.
const char* const kSegments = "tokenizer.ggml.token_type_count";

void write_segments(const Json& config, const GgufKeyWriter& to) {
  to.shared_integer(kSegments, config.at("type_vocab_size"));
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
          .read =
              [](const GgufKeys& from, const GgufTensorFacts&, Json& config) {
                config["add_pooling_layer"] = false;
                config["type_vocab_size"] = from.integer(kSegments);
              },
          .write = write_segments,
          .headless_classes = {"BertForMaskedLM", "BertForPreTraining"},
          .head_modules = {"cls.", "bert.pooler."}};
}

void read_t5(const GgufKeys& from, const GgufTensorFacts& facts, Json& config) {
  const char* const value_length = "t5.attention.value_length";
  if (from.integer(value_length, config["d_kv"].get<int64_t>()) != config["d_kv"])
    from.fail(value_length, "values are not as wide as keys");
  config["num_decoder_layers"] = from.integer("t5.decoder_block_count", config["num_layers"].get<int64_t>());
  config["feed_forward_proj"] = facts.has("enc.blk.0.ffn_gate.weight") ? "gated-gelu" : "relu";
  config["is_encoder_decoder"] = true;
  const char* const start = "t5.decoder_start_token_id";
  if (from.has(start)) config["decoder_start_token_id"] = from.integer(start);
  // They limit nothing, and say again what the other epsilon says.
  from.integer("t5.context_length", 0);
  from.number("t5.attention.layer_norm_epsilon", 0);
  from.integer("t5.attention.head_count_kv", 0);
}

void write_t5(const Json& config, const GgufKeyWriter& to) {
  // Positions are relative, so this length, which T5 was trained with, limits nothing.
  constexpr int64_t usual_length = 512;
  to.integer("context_length", config.value("n_positions", usual_length));
  to.integer("attention.value_length", config.at("d_kv"));
  to.number("attention.layer_norm_epsilon", config.at("layer_norm_epsilon"));
  const auto n_decoder_layers = config.value("num_decoder_layers", Json());
  const int64_t n_layers = config.at("num_layers");
  const int64_t n_decoded = n_decoder_layers.is_null() ? n_layers : n_decoder_layers.get<int64_t>();
  if (n_decoded > n_layers) {
    throw ConfigError(fmt::format("llama.cpp runs no decoder with more layers ({}) than the encoder ({})",
                                  n_decoded, n_layers));
  }
  to.integer("decoder_block_count", n_decoded);
  for (const char* const key : {"decoder_start_token_id", "bos_token_id"}) {
    const auto id = config.value(key, Json());
    if (id.is_null()) continue;
    to.integer("decoder_start_token_id", id);
    break;
  }
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
                  {"enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi", StoredForm::same,
                   GgufVariant::simple},
                  {"enc.blk.{}.ffn_gate", "encoder.block.{}.layer.1.DenseReluDense.wi_0"},
                  {"enc.blk.{}.ffn_up", "encoder.block.{}.layer.1.DenseReluDense.wi_1", StoredForm::same,
                   GgufVariant::full},
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
                  {"dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi", StoredForm::same,
                   GgufVariant::simple},
                  {"dec.blk.{}.ffn_gate", "decoder.block.{}.layer.2.DenseReluDense.wi_0"},
                  {"dec.blk.{}.ffn_up", "decoder.block.{}.layer.2.DenseReluDense.wi_1", StoredForm::same,
                   GgufVariant::full},
                  {"dec.blk.{}.ffn_down", "decoder.block.{}.layer.2.DenseReluDense.wo"}},
      .fixed = {{"relative_attention_max_distance", 128}},
      .read = read_t5,
      .write = write_t5};
}

GgufArchitecture nomic_bert() {
  return {.name = "nomic-bert",
          .model_type = "nomic_bert",
          .class_name = "NomicBertModel",
          .body = GgufBody::encoder,
          .keys = layer_norm_keys("layer_norm_eps"),
          .modules = {{"token_embd", "nomic_bert.embeddings.word_embeddings"},
                      {"token_types", "nomic_bert.embeddings.token_type_embeddings"},
                      {"token_embd_norm", "nomic_bert.emb_ln"},
                      {"blk.{}.attn_qkv", "nomic_bert.encoder.layers.{}.attn.Wqkv"},
                      {"blk.{}.attn_output", "nomic_bert.encoder.layers.{}.attn.out_proj"},
                      {"blk.{}.attn_output_norm", "nomic_bert.encoder.layers.{}.norm1"},
                      {"blk.{}.ffn_up", "nomic_bert.encoder.layers.{}.mlp.fc11"},
                      {"blk.{}.ffn_gate", "nomic_bert.encoder.layers.{}.mlp.fc12"},
                      {"blk.{}.ffn_down", "nomic_bert.encoder.layers.{}.mlp.fc2"},
                      {"blk.{}.layer_output_norm", "nomic_bert.encoder.layers.{}.norm2"}},
          .fixed = {{"hidden_act", "silu"}},
          .rotary = {.theta = "rope_theta"},
          .read = [](const GgufKeys& from, const GgufTensorFacts&,
                     Json& config) { config["type_vocab_size"] = from.integer(kSegments); },
          .write = write_segments,
          .headless_classes = {"NomicBertForMaskedLM"},
          .head_modules = {"cls.", "nomic_bert.pooler."}};
}

std::vector<GgufKeyName> modern_bert_keys() {
  auto keys = layer_norm_keys("norm_eps");
  keys.push_back({"attention.sliding_window", "local_attention"});
  return keys;
}

GgufArchitecture modern_bert() {
  return {.name = "modern-bert",
          .model_type = "modernbert",
          .class_name = "ModernBertModel",
          .body = GgufBody::encoder,
          .keys = modern_bert_keys(),
          .modules = {{"token_embd", "model.embeddings.tok_embeddings"},
                      {"token_embd_norm", "model.embeddings.norm"},
                      {"output_norm", "model.final_norm"},
                      {"blk.{}.attn_norm", "model.layers.{}.attn_norm"},
                      {"blk.{}.attn_qkv", "model.layers.{}.attn.Wqkv"},
                      {"blk.{}.attn_output", "model.layers.{}.attn.Wo"},
                      {"blk.{}.ffn_norm", "model.layers.{}.mlp_norm"},
                      {"blk.{}.ffn_up", "model.layers.{}.mlp.Wi"},
                      {"blk.{}.ffn_down", "model.layers.{}.mlp.Wo"}},
          .fixed = {{"hidden_activation", "gelu"}, {"global_attn_every_n_layers", 3}},
          .rotary = {.theta = "global_rope_theta", .local_theta = "local_rope_theta"},
          .headless_classes = {"ModernBertForMaskedLM"},
          .head_modules = {"head.", "decoder."}};
}

}  // namespace

std::vector<GgufArchitecture> gguf_encoders() { return {bert(), nomic_bert(), modern_bert(), t5()}; }

}  // namespace zoo
