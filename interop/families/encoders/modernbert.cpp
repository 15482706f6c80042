// ModernBERT (Warner et al. 2024): norms before the sub-layers, rotary positions of two bases, windows in
// turns, gated networks, no biases.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

bool pools_texts(const Experiment& experiment) { return experiment.task.type == "text_classification"; }

/// Every n-th layer, from the first on, sees everything.
std::vector<bool> windows_except_every(int64_t n, int64_t n_layers) {
  std::vector<bool> result;
  for (int64_t layer = 0; layer < n_layers; ++layer) result.push_back(layer % n != 0);
  return result;
}

void read_positions(ForeignConfig& from, ModelConfig& model) {
  const int64_t every = from.integer("global_attn_every_n_layers", 3);
  if (every < 1) from.fail("global_attn_every_n_layers", "must be at least 1");
  const auto is_window = read_windows(from, windows_except_every(every, model.n_layers));
  const int64_t width = from.integer("local_attention", 128);
  if (width < 2) from.fail("local_attention", "must be at least 2");
  // A query sees half of the width on each side, besides itself.
  set_windows(is_window, width / 2 + 1, model);
  read_rotary(from, {.theta = 160000, .theta_key = "global_rope_theta"}, model);
  const bool has_window = window_of(model).has_value();
  const auto given = from.optional_number("local_rope_theta");
  const bool is_null = from.json().contains("local_rope_theta") && !given;
  if (!model.rotary.local_theta)
    model.rotary.local_theta = is_null ? model.rotary.theta : given.value_or(10000);
  if (!has_window) model.rotary.local_theta.reset();
}

void read_modernbert(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder;
  model.vocab_size = from.integer("vocab_size", 50368);
  model.d_model = from.integer("hidden_size", 768);
  model.n_layers = from.integer("num_hidden_layers", 22);
  model.n_heads = from.integer("num_attention_heads", 12);
  model.d_ff = from.integer("intermediate_size", 1152);
  model.activation = read_gated_activation(from, "hidden_activation", "gelu");
  model.gate = GateProjection::fused;
  model.projection = Projection::fused;
  model.norm_eps = from.number("norm_eps", 1e-5);
  model.max_positions = from.integer("max_position_embeddings", 8192);
  model.bias = from.flag("norm_bias", false);
  model.qkv_bias = model.out_bias = from.flag("attention_bias", false);
  model.ff_bias = from.flag("mlp_bias", false);
  model.embedding_norm = true;
  model.first_norm = false;
  model.dropout = 0;
  // They would be in places where no other model has any.
  from.require("embedding_dropout", 0.0);
  from.require("attention_dropout", 0.0);
  model.activation_dropout = from.number("mlp_dropout", 0);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.output_bias = from.flag("decoder_bias", true);
  model.head_bias = from.flag("classifier_bias", false);
  model.pooler = pools_texts(to);
  const auto pooling = from.text("classifier_pooling", "cls");
  if (pooling != "cls" && pooling != "mean")
    from.fail("classifier_pooling", "only cls and mean are supported");
  const auto activation = read_activation(from, "classifier_activation", "gelu");
  if (activation != Activation::gelu) from.fail("classifier_activation", "only gelu is supported");
  if (model.pooler) {
    model.pooler_activation = PoolerActivation::gelu;
    model.pooler_norm = true;
    if (pooling == "mean") model.text_vector = TextVector::mean;
  } else if (fills_masks(to) && model.activation != Activation::geglu) {
    from.fail("hidden_activation", "only gelu is supported with a head for masked tokens");
  }
  read_positions(from, model);
  from.require("position_embedding_type", "absolute");
  // They change the first weights, the speed, or what is not computed; and the classifier's dropout.
  from.ignore({"initializer_cutoff_factor", "deterministic_flash_attn", "sparse_prediction",
               "sparse_pred_ignore_index", "reference_compile", "repad_logits_with_grad",
               "classifier_dropout", "layer_norm_eps", "cls_token_id", "sep_token_id"});
}

void write_modernbert(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["hidden_size"] = model.d_model;
  to["num_hidden_layers"] = model.n_layers;
  to["num_attention_heads"] = model.n_heads;
  to["intermediate_size"] = model.feed_forward_width();
  to["hidden_activation"] = foreign_name(model.activation);
  to["norm_eps"] = model.norm_eps;
  to["max_position_embeddings"] = model.max_positions;
  to["norm_bias"] = model.bias;
  to["attention_bias"] = model.qkv_bias.value_or(model.bias);
  to["mlp_bias"] = model.ff_bias.value_or(model.bias);
  to["embedding_dropout"] = to["attention_dropout"] = 0.0;
  to["mlp_dropout"] = model.activation_dropout;
  to["decoder_bias"] = model.output_bias;
  to["classifier_bias"] = model.head_bias;
  to["classifier_activation"] = "gelu";
  if (pools_texts(from)) to["classifier_pooling"] = model.text_vector == TextVector::mean ? "mean" : "cls";
  // transformers 4 reads the older keys alone, and transformers 5 both.
  for (const auto* const key : {"rope_parameters", "rope_theta", "rope_scaling"}) to.erase(key);
  to["global_rope_theta"] = model.rotary.theta;
  to["local_rope_theta"] = model.rotary.local_theta.value_or(model.rotary.theta);
  to["layer_types"] = layer_types_of(model);
  const auto is_window = windows_of(model);
  int64_t every = 1;
  while (every < model.n_layers && is_window[static_cast<size_t>(every)]) ++every;
  if (windows_except_every(every, model.n_layers) == is_window) to["global_attn_every_n_layers"] = every;
  if (const auto window = window_of(model)) to["local_attention"] = 2 * (*window - 1);
}

TensorRules modernbert_rules(const Experiment& experiment) {
  const std::string body = "model.", ours = "encoder.layers.{}.", theirs = body + "layers.{}.";
  TensorRules rules;
  rules.prefix(body).layers(experiment.model.n_layers);
  rules.module("token_embedding", body + "embeddings.tok_embeddings");
  rules.module("encoder_embedder.embedding_norm", body + "embeddings.norm");
  rules.module(ours + "residual.self_attention_norm", theirs + "attn_norm");
  rules.module(ours + "self_attention.qkv", theirs + "attn.Wqkv");
  rules.module(ours + "self_attention.out", theirs + "attn.Wo");
  rules.module(ours + "residual.feed_forward_norm", theirs + "mlp_norm");
  rules.module(ours + "feed_forward.gate_up", theirs + "mlp.Wi");
  rules.module(ours + "feed_forward.down", theirs + "mlp.Wo");
  rules.module("encoder.final_norm", body + "final_norm");
  if (fills_masks(experiment)) {
    rules.module("head.transform", "head.dense");
    rules.module("head.norm", "head.norm");
    rules.module("head.output", "decoder");
    if (experiment.model.tie_embeddings)
      rules.tied("decoder.weight", body + "embeddings.tok_embeddings.weight");
    return rules;
  }
  rules.module("head.classifier", "classifier");
  rules.ignore("decoder.*");
  if (pools_texts(experiment)) {
    rules.module("head.pooler", "head.dense");
    rules.module("head.pooler_norm", "head.norm");
  } else {
    rules.ignore("head.*");
  }
  return rules;
}

}  // namespace

ForeignFamily modernbert_foreign() {
  return {.model_type = "modernbert",
          .doc = "ModernBERT (Warner et al. 2024): rotary positions, windows in turns, gated networks",
          .classes = {{"ModernBertForMaskedLM", "masked_language_modeling"},
                      {"ModernBertForSequenceClassification", "text_classification"},
                      {"ModernBertModel", "text_features"}},
          .read = read_modernbert,
          .write = write_modernbert,
          .rules = modernbert_rules};
}

}  // namespace zoo
