// Falcon (Almazrouei et al. 2023). The 7B has one head for keys and values, and one norm in a layer; the 40B
// has groups of heads, and a norm for each sub-layer.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_falcon(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size", 65024);
  model.d_model = from.integer(from.has("n_embed") ? "n_embed" : "hidden_size", 4544);
  from.ignore({"hidden_size"});  // where n_embed says it
  model.n_layers = from.integer("num_hidden_layers", 32);
  model.n_heads = from.integer("num_attention_heads", 71);
  model.d_ff = from.optional_integer("ffn_hidden_size");
  model.max_positions = from.integer("max_position_embeddings", 2048);
  model.activation = read_activation(from, "activation", "gelu");
  model.norm_eps = from.number("layer_norm_epsilon", 1e-5);
  model.projection = Projection::fused;
  model.qkv_bias = model.out_bias = model.ff_bias = from.flag("bias", false);
  model.dropout = from.number("hidden_dropout", 0);
  model.attention_dropout = from.number("attention_dropout", 0);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.classifier_bias = false;
  const bool is_new = from.flag("new_decoder_architecture", false);
  const bool is_multi_query = from.flag("multi_query", true);
  const auto kv_heads = from.optional_integer("num_kv_heads");
  if (is_new)
    model.n_kv_heads = kv_heads;
  else if (is_multi_query)
    model.n_kv_heads = 1;
  const bool is_parallel = from.flag("parallel_attn", true);
  if (is_new && !is_parallel) from.fail("parallel_attn", "must be true with new_decoder_architecture");
  const int64_t n_norms = from.optional_integer("num_ln_in_parallel_attn").value_or(is_new ? 2 : 1);
  if (n_norms != 1 && (n_norms != 2 || !is_new))
    from.fail("num_ln_in_parallel_attn", "must be 1, or 2 with new_decoder_architecture");
  model.norm_placement = !is_parallel   ? NormPlacement::pre
                         : n_norms == 2 ? NormPlacement::parallel_norms
                                        : NormPlacement::parallel;
  // transformers computes its ALiBi in bfloat16, whatever the model's numbers are.
  from.require("alibi", false);
  from.require("apply_residual_connection_post_layernorm", false);
  read_rotary(from, {}, model);
}

void write_falcon(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  // One head for keys and values is written as the 7B has it, as many as there are query heads without
  // multi_query, and groups as in the 40B.
  const bool has_two_norms = model.norm_placement == NormPlacement::parallel_norms;
  const bool has_groups = model.kv_heads() != 1 && model.kv_heads() != model.n_heads;
  to["hidden_size"] = model.d_model;
  to["num_hidden_layers"] = model.n_layers;
  to["num_attention_heads"] = model.n_heads;
  to["num_kv_heads"] = model.kv_heads();
  to["ffn_hidden_size"] = model.feed_forward_width();
  to["max_position_embeddings"] = model.max_positions;
  to["activation"] = foreign_name(model.activation);
  to["layer_norm_epsilon"] = model.norm_eps;
  to["bias"] = model.qkv_bias.value_or(model.bias);
  to["hidden_dropout"] = model.dropout;
  to["attention_dropout"] = model.attention_dropout;
  to["new_decoder_architecture"] = has_two_norms || has_groups;
  to["multi_query"] = model.kv_heads() == 1;
  to["parallel_attn"] = model.norm_placement != NormPlacement::pre;
  if (has_two_norms || has_groups) to["num_ln_in_parallel_attn"] = has_two_norms ? 2 : 1;
  to["alibi"] = false;
  write_rotary(model, to);
}

TensorRules falcon_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string ours = "decoder.layers.{}.", theirs = "transformer.h.{}.";
  TensorRules rules;
  rules.prefix("transformer.").layers(model.n_layers);
  rules.module("token_embedding", "transformer.word_embeddings");
  // A layer has one of these norms, or one of these pairs.
  rules.module(ours + "residual.norm", theirs + "input_layernorm");
  const bool is_pre = model.norm_placement == NormPlacement::pre;
  rules.module(ours + "residual.self_attention_norm", theirs + (is_pre ? "input_layernorm" : "ln_attn"));
  rules.module(ours + "residual.feed_forward_norm",
               theirs + (is_pre ? "post_attention_layernorm" : "ln_mlp"));
  add_stacked_attention(model, ours + "self_attention.", theirs + "self_attention.query_key_value",
                        model.kv_heads(), rules);
  rules.module(ours + "self_attention.out", theirs + "self_attention.dense");
  rules.module(ours + "feed_forward.up", theirs + "mlp.dense_h_to_4h");
  rules.module(ours + "feed_forward.down", theirs + "mlp.dense_4h_to_h");
  rules.module("decoder.final_norm", "transformer.ln_f");
  add_decoder_heads(experiment, "lm_head", "transformer.word_embeddings", rules);
  rules.ignore("transformer.h.*.self_attention.rotary_emb.inv_freq");
  return rules;
}

}  // namespace

ForeignFamily falcon_foreign() {
  return {.model_type = "falcon",
          .doc = "Falcon (Almazrouei et al. 2023): few heads for keys and values, parallel sub-layers",
          .classes = {{"FalconForCausalLM", "language_modeling"},
                      {"FalconForSequenceClassification", "text_classification"},
                      {"FalconModel", "text_features"}},
          .read = read_falcon,
          .write = write_falcon,
          .rules = falcon_rules};
}

}  // namespace zoo
