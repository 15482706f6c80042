// Decoders whose scores fall with the distance (ALiBi, Press et al. 2022): BLOOM (BigScience 2022), which
// normalises its embeddings, and MPT (MosaicML 2023), which has no biases.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_bloom(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size", 250880);
  model.d_model = from.integer(from.has("n_embed") ? "n_embed" : "hidden_size", 64);
  from.ignore({"hidden_size"});  // where n_embed says it
  // The first files have the second names.
  model.n_layers = from.integer(from.has("n_layer") ? "n_layer" : "num_hidden_layers", 2);
  model.n_heads = from.integer(from.has("n_head") ? "n_head" : "num_attention_heads", 8);
  model.max_positions = from.integer("seq_length", 2048);
  model.activation = Activation::gelu_tanh;
  model.norm_eps = from.number("layer_norm_epsilon", 1e-5);
  model.embedding_norm = true;
  model.position = Position::alibi;
  model.projection = Projection::fused;
  model.dropout = from.number("hidden_dropout", 0);
  model.attention_dropout = from.number("attention_dropout", 0);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.classifier_bias = false;
  from.require("apply_residual_connection_post_layernorm", false);
  from.require("n_inner", nullptr);
  // How the authors' program divided and fused its work.
  from.ignore({"pretraining_tp", "slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion",
               "bias_dropout_fusion", "skip_bias_add", "skip_bias_add_qkv", "offset_alibi"});
  from.ignore({"unk_token_id"});
}

void write_bloom(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["hidden_size"] = model.d_model;
  to["n_layer"] = model.n_layers;
  to["n_head"] = model.n_heads;
  to["seq_length"] = model.max_positions;
  to["layer_norm_epsilon"] = model.norm_eps;
  to["hidden_dropout"] = model.dropout;
  to["attention_dropout"] = model.attention_dropout;
}

TensorRules bloom_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string ours = "decoder.layers.{}.", theirs = "transformer.h.{}.";
  TensorRules rules;
  rules.prefix("transformer.").layers(model.n_layers);
  rules.module("token_embedding", "transformer.word_embeddings");
  rules.module("decoder_embedder.embedding_norm", "transformer.word_embeddings_layernorm");
  rules.module(ours + "residual.self_attention_norm", theirs + "input_layernorm");
  add_stacked_attention(model, ours + "self_attention.", theirs + "self_attention.query_key_value",
                        model.n_heads, rules);
  rules.module(ours + "self_attention.out", theirs + "self_attention.dense");
  rules.module(ours + "residual.feed_forward_norm", theirs + "post_attention_layernorm");
  rules.module(ours + "feed_forward.up", theirs + "mlp.dense_h_to_4h");
  rules.module(ours + "feed_forward.down", theirs + "mlp.dense_4h_to_h");
  rules.module("decoder.final_norm", "transformer.ln_f");
  add_decoder_heads(experiment, "lm_head", "transformer.word_embeddings", rules);
  return rules;
}

void read_mpt(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size", 50368);
  model.d_model = from.integer("d_model", 2048);
  model.n_layers = from.integer("n_layers", 24);
  model.n_heads = from.integer("n_heads", 16);
  model.max_positions = from.integer("max_seq_len", 2048);
  from.require("expansion_ratio", 4);  // transformers knows no other
  model.activation = Activation::gelu;
  model.norm_eps = from.number("layer_norm_epsilon", 1e-5);
  model.bias = false;
  model.position = Position::alibi;
  model.projection = Projection::fused;
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.classifier_bias = false;
  model.dropout = 0;
  if (auto attention = from.object("attn_config")) {
    model.dropout = model.attention_dropout = attention->number("attn_pdrop", 0);
    model.qkv_clip = attention->optional_number("clip_qkv");
    model.attention_scale = attention->optional_number("softmax_scale");
    attention->require("alibi", true);
    attention->require("alibi_bias_max", 8);
    attention->require("attn_type", "multihead_attention");
    attention->require("prefix_lm", false);
    attention->require("qk_ln", false);
    attention->require("attn_uses_sequence_id", false);
    ignore_common_keys(*attention);
    attention->ignore({"attn_impl", "model_type", "architectures", "problem_type"});
    attention->finish();
  }
  from.require("no_bias", true);
  from.require("logit_scale", nullptr);
  from.require("embedding_fraction", 1.0);
  from.require("norm_type", "low_precision_layernorm");
  from.ignore({"learned_pos_emb", "resid_pdrop", "emb_pdrop", "init_device", "init_config", "verbose",
               "tokenizer_name"});
}

void write_mpt(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["d_model"] = model.d_model;
  to["n_layers"] = model.n_layers;
  to["n_heads"] = model.n_heads;
  to["max_seq_len"] = model.max_positions;
  to["layer_norm_epsilon"] = model.norm_eps;
  to["attn_config"] = {{"alibi", true},
                       {"attn_pdrop", model.attention_dropout},
                       {"clip_qkv", or_null(model.qkv_clip)},
                       {"softmax_scale", or_null(model.attention_scale)}};
}

TensorRules mpt_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string ours = "decoder.layers.{}.", theirs = "transformer.blocks.{}.";
  TensorRules rules;
  rules.prefix("transformer.").layers(model.n_layers);
  rules.module("token_embedding", "transformer.wte");
  rules.module(ours + "residual.self_attention_norm", theirs + "norm_1");
  add_stacked_attention(model, ours + "self_attention.", theirs + "attn.Wqkv", 1, rules);
  rules.module(ours + "self_attention.out", theirs + "attn.out_proj");
  rules.module(ours + "residual.feed_forward_norm", theirs + "norm_2");
  rules.module(ours + "feed_forward.up", theirs + "ffn.up_proj");
  rules.module(ours + "feed_forward.down", theirs + "ffn.down_proj");
  rules.module("decoder.final_norm", "transformer.norm_f");
  add_decoder_heads(experiment, "lm_head", "transformer.wte", rules);
  return rules;
}

}  // namespace

ForeignFamily bloom_foreign() {
  return {.model_type = "bloom",
          .doc = "BLOOM (BigScience 2022): ALiBi, and a norm on the embeddings",
          .classes = {{"BloomForCausalLM", "language_modeling"},
                      {"BloomForSequenceClassification", "text_classification"},
                      {"BloomModel", "text_features"}},
          .read = read_bloom,
          .write = write_bloom,
          .rules = bloom_rules};
}

ForeignFamily mpt_foreign() {
  return {.model_type = "mpt",
          .doc = "MPT (MosaicML 2023): ALiBi, and no biases",
          .classes = {{"MptForCausalLM", "language_modeling"},
                      {"MptForSequenceClassification", "text_classification"},
                      {"MptModel", "text_features"},
                      // As its authors call the first one.
                      {"MPTForCausalLM", "language_modeling"}},
          .read = read_mpt,
          .write = write_mpt,
          .rules = mpt_rules};
}

}  // namespace zoo
