// GPT-2 (Radford et al. 2019). Its linear maps are stored as (in, out), queries, keys and values in one.

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {

void add_gpt2_body(Move move, TensorRules& rules) {
  const std::string ours = "decoder.layers.{}.", theirs = "transformer.h.{}.";
  rules.module("token_embedding", "transformer.wte");
  rules.module("decoder_embedder.position_embedding", "transformer.wpe");
  rules.module(ours + "residual.self_attention_norm", theirs + "ln_1");
  // One of these two is in the model.
  rules.module(ours + "self_attention.qkv", theirs + "attn.c_attn", move);
  rules.modules({ours + "self_attention.q", ours + "self_attention.k", ours + "self_attention.v"},
                {theirs + "attn.c_attn"}, {}, move);
  rules.module(ours + "self_attention.out", theirs + "attn.c_proj", move);
  rules.module(ours + "residual.feed_forward_norm", theirs + "ln_2");
  rules.module(ours + "feed_forward.up", theirs + "mlp.c_fc", move);
  rules.module(ours + "feed_forward.down", theirs + "mlp.c_proj", move);
  rules.module("decoder.final_norm", "transformer.ln_f");
}

namespace {

void read_gpt2(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::decoder;
  model.vocab_size = from.integer("vocab_size", 50257);
  model.d_model = from.integer("n_embd", 768);
  model.n_layers = from.integer("n_layer", 12);
  model.n_heads = from.integer("n_head", 12);
  model.d_ff = from.optional_integer("n_inner");
  model.max_positions = from.integer("n_positions", 1024);
  model.activation = read_activation(from, "activation_function", "gelu_new");
  model.norm_eps = from.number("layer_norm_epsilon", 1e-5);
  model.dropout = from.number("resid_pdrop", 0.1);
  model.attention_dropout = from.number("attn_pdrop", 0.1);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.position = Position::learned;
  model.projection = Projection::fused;
  from.require("scale_attn_weights", true);
  model.attention_scale_by_layer = from.flag("scale_attn_by_inverse_layer_idx", false);
  model.classifier_bias = false;
  from.require("add_cross_attention", false);
  // Another order of the same arithmetic, in more precise numbers.
  from.ignore({"reorder_and_upcast_attn"});
  from.ignore({"embd_pdrop", "n_ctx", "n_special", "predict_special_tokens", "summary_type",
               "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"});
}

void write_gpt2(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["n_embd"] = model.d_model;
  to["n_layer"] = model.n_layers;
  to["n_head"] = model.n_heads;
  to["n_inner"] = model.feed_forward_width();
  to["n_positions"] = model.max_positions;
  to["activation_function"] = foreign_name(model.activation);
  to["layer_norm_epsilon"] = model.norm_eps;
  to["resid_pdrop"] = to["embd_pdrop"] = model.dropout;
  to["attn_pdrop"] = model.attention_dropout;
  to["scale_attn_by_inverse_layer_idx"] = model.attention_scale_by_layer;
}

TensorRules gpt2_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  TensorRules rules;
  rules.prefix("transformer.").layers(model.n_layers);
  add_gpt2_body(Move::transposed, rules);
  add_decoder_heads(experiment, "lm_head", "transformer.wte", rules);
  // Tables of masks that older versions saved.
  rules.ignore("transformer.h.*.attn.bias").ignore("transformer.h.*.attn.masked_bias");
  return rules;
}

}  // namespace

ForeignFamily gpt2_foreign() {
  return {.model_type = "gpt2",
          .doc = "GPT-2 (Radford et al. 2019)",
          .classes = {{"GPT2LMHeadModel", "language_modeling"},
                      {"GPT2ForSequenceClassification", "text_classification"},
                      {"GPT2Model", "text_features"}},
          .read = read_gpt2,
          .write = write_gpt2,
          .rules = gpt2_rules};
}

}  // namespace zoo
