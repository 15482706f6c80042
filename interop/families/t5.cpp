// T5 (Raffel et al. 2020), also version 1.1 (Shazeer 2020), and mT5 (Xue et al. 2021).

#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"
#include "models/config/layer_types.h"

namespace zoo {
namespace {

/// T5's positions are relative, so its sequences have no greatest length. This one is far beyond its
/// training.
constexpr int64_t kLongest = 32768;

/// The values of keys that a config.json may lack.
struct T5Defaults {
  int64_t vocab_size = 32128, n_heads = 8, d_ff = 2048, n_layers = 6;
  std::string feed_forward = "relu";
};

/// All but the output.
void read_t5_like(ForeignConfig& from, const T5Defaults& defaults, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder_decoder;
  model.vocab_size = from.integer("vocab_size", defaults.vocab_size);
  model.d_model = from.integer("d_model", 512);
  model.n_heads = from.integer("num_heads", defaults.n_heads);
  model.head_dim = from.integer("d_kv", 64);
  model.d_ff = from.integer("d_ff", defaults.d_ff);
  model.n_layers = from.integer("num_layers", defaults.n_layers);
  model.n_decoder_layers = from.optional_integer("num_decoder_layers");
  model.position = Position::t5;
  model.relative_buckets = from.integer("relative_attention_num_buckets", 32);
  model.relative_max_distance = from.integer("relative_attention_max_distance", 128);
  model.max_positions = kLongest;
  model.norm = NormKind::rms_norm;
  model.norm_eps = from.number("layer_norm_epsilon", 1e-6);
  model.dropout = model.attention_dropout = model.activation_dropout = from.number("dropout_rate", 0.1);
  model.bias = false;
  model.attention_scale = 1;
  model.init = Initialization::t5;
  const auto activation = from.text("feed_forward_proj", defaults.feed_forward);
  if (activation == "relu") {
    model.activation = Activation::relu;
  } else if (activation == "gated-gelu") {
    model.activation = Activation::geglu_tanh;
  } else {
    from.fail("feed_forward_proj", "only relu and gated-gelu are supported");
  }
  // The first two follow from feed_forward_proj.
  from.ignore({"dense_act_fn", "is_gated_act", "classifier_dropout", "n_positions"});
}

void read_t5(ForeignConfig& from, Experiment& to) {
  read_t5_like(from, {}, to);
  auto& model = to.model;
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  // Before transformers 5, the first key said both.
  if (from.flag("scale_decoder_outputs", model.tie_embeddings))
    model.output_scale = 1 / std::sqrt(static_cast<double>(model.d_model));
}

void read_mt5(ForeignConfig& from, Experiment& to) {
  read_t5_like(
      from, {.vocab_size = 250112, .n_heads = 6, .d_ff = 1024, .n_layers = 8, .feed_forward = "gated-gelu"},
      to);
  // transformers 5 writes true, whatever the weights are: these decide, see TensorMapping::has_own_output().
  to.model.tie_embeddings = from.flag("tie_word_embeddings", true);
  from.require("scale_decoder_outputs", false);
}

void write_t5(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["d_model"] = model.d_model;
  to["num_heads"] = model.n_heads;
  to["d_kv"] = model.head_width();
  to["d_ff"] = model.feed_forward_width();
  to["num_layers"] = model.n_layers;
  to["num_decoder_layers"] = model.decoder_layers();
  to["relative_attention_num_buckets"] = model.relative_buckets;
  to["relative_attention_max_distance"] = model.relative_max_distance;
  to["layer_norm_epsilon"] = model.norm_eps;
  to["dropout_rate"] = model.dropout;
  to["feed_forward_proj"] = activation_of(model)->is_gated() ? "gated-gelu" : "relu";
  to["is_encoder_decoder"] = true;
  to.erase("scale_decoder_outputs");
  if (model.output_scale.has_value() != model.tie_embeddings)
    to["scale_decoder_outputs"] = model.output_scale.has_value();
}

void write_mt5(const Experiment& from, nlohmann::json& to) {
  write_t5(from, to);
  to.erase("scale_decoder_outputs");
}

TensorRules t5_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  TensorRules rules;
  rules.layers(std::max(model.n_layers, model.decoder_layers()));
  rules.module("token_embedding", "shared");
  for (const std::string side : {"encoder", "decoder"}) {
    const bool reads_memory = side == "decoder";
    const std::string ours = side + ".layers.{}.", theirs = side + ".block.{}.layer.";
    const auto attention = [&](const std::string& name, const std::string& number,
                               const std::string& their_name) {
      for (const std::string part : {"q", "k", "v"})
        rules.module(ours + name + "." + part, theirs + number + "." + their_name + "." + part);
      rules.module(ours + name + ".out", theirs + number + "." + their_name + ".o");
      rules.module(ours + "residual." + name + "_norm", theirs + number + ".layer_norm");
    };
    attention("self_attention", "0", "SelfAttention");
    if (reads_memory) attention("cross_attention", "1", "EncDecAttention");
    const std::string dense = theirs + (reads_memory ? "2" : "1") + ".DenseReluDense.";
    if (activation_of(model)->is_gated()) {
      rules.module(ours + "feed_forward.gate", dense + "wi_0");
      rules.module(ours + "feed_forward.up", dense + "wi_1");
    } else {
      rules.module(ours + "feed_forward.up", dense + "wi");
    }
    rules.module(ours + "feed_forward.down", dense + "wo");
    rules.module(ours + "residual.feed_forward_norm", theirs + (reads_memory ? "2" : "1") + ".layer_norm");
    // The first layer has the table of all.
    rules.module(side + ".position_bias.buckets",
                 side + ".block.0.layer.0.SelfAttention.relative_attention_bias");
    rules.module(side + ".final_norm", side + ".final_layer_norm");
    rules.copy(side + ".embed_tokens.weight", "shared.weight");
  }
  rules.module("head.output", "lm_head");
  if (model.tie_embeddings) rules.tied("lm_head.weight", "shared.weight");
  // Older files have a table that no version used.
  rules.ignore("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight");
  return rules;
}

}  // namespace

ForeignFamily t5_foreign() {
  return {.model_type = "t5",
          .doc = "T5 1.0 and 1.1 (Raffel et al. 2020)",
          // The second name is an older one; a model without a head has the matrix of the embeddings for it.
          .classes = {{"T5ForConditionalGeneration", "text_to_text"},
                      {"T5WithLMHeadModel", "text_to_text"},
                      {"T5Model", "text_to_text"}},
          .read = read_t5,
          .write = write_t5,
          .rules = t5_rules};
}

ForeignFamily mt5_foreign() {
  return {.model_type = "mt5",
          .doc = "mT5 (Xue et al. 2021): T5 1.1 for a hundred languages",
          .classes = {{"MT5ForConditionalGeneration", "text_to_text"}, {"MT5Model", "text_to_text"}},
          .read = read_mt5,
          .write = write_mt5,
          .rules = t5_rules};
}

}  // namespace zoo
