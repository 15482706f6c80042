// DistilBERT (Sanh et al. 2019): BERT with half of the layers, without segments and pooler.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

void read_distilbert(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder;
  model.vocab_size = from.integer("vocab_size", 30522);
  model.d_model = from.integer("dim", 768);
  model.n_layers = from.integer("n_layers", 6);
  model.n_heads = from.integer("n_heads", 12);
  model.d_ff = from.integer("hidden_dim", 3072);
  model.max_positions = from.integer("max_position_embeddings", 512);
  model.activation = read_activation(from, "activation", "gelu");
  model.norm_eps = 1e-12;
  model.norm_placement = NormPlacement::post;
  model.embedding_norm = true;
  model.position = Position::learned;
  model.dropout = from.number("dropout", 0.1);
  model.attention_dropout = from.number("attention_dropout", 0.1);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.output_bias = true;
  model.pooler = to.task.type == "text_classification";
  model.pooler_activation = PoolerActivation::relu;
  model.init_residual_scaling = false;
  // The sinusoids were only the initial values of the table.
  from.ignore({"sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_"});
}

void write_distilbert(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  to["dim"] = model.d_model;
  to["n_layers"] = model.n_layers;
  to["n_heads"] = model.n_heads;
  to["hidden_dim"] = model.feed_forward_width();
  to["max_position_embeddings"] = model.max_positions;
  to["activation"] = foreign_name(model.activation);
  to["dropout"] = model.dropout;
  to["attention_dropout"] = model.attention_dropout;
}

TensorRules distilbert_rules(const Experiment& experiment) {
  const std::string ours = "encoder.layers.{}.", body = "distilbert.",
                    theirs = body + "transformer.layer.{}.";
  TensorRules rules;
  rules.prefix(body).layers(experiment.model.n_layers);
  rules.module("token_embedding", body + "embeddings.word_embeddings");
  rules.module("encoder_embedder.position_embedding", body + "embeddings.position_embeddings");
  rules.module("encoder_embedder.embedding_norm", body + "embeddings.LayerNorm");
  for (const std::string part : {"q", "k", "v", "out"})
    rules.module(ours + "self_attention." + part, theirs + "attention." + part + "_lin");
  rules.module(ours + "residual.self_attention_norm", theirs + "sa_layer_norm");
  rules.module(ours + "feed_forward.up", theirs + "ffn.lin1");
  rules.module(ours + "feed_forward.down", theirs + "ffn.lin2");
  rules.module(ours + "residual.feed_forward_norm", theirs + "output_layer_norm");
  if (fills_masks(experiment)) {
    rules.module("head.transform", "vocab_transform");
    rules.module("head.norm", "vocab_layer_norm");
    rules.tensor("head.output.bias", "vocab_projector.bias");
    rules.tensor("head.output.weight", "vocab_projector.weight");
    if (experiment.model.tie_embeddings)
      rules.tied("vocab_projector.weight", body + "embeddings.word_embeddings.weight");
  } else if (experiment.task.type == "token_classification") {
    rules.module("head.classifier", "classifier");
    rules.ignore("vocab_*");
  } else {
    rules.module("head.pooler", "pre_classifier");
    rules.module("head.classifier", "classifier");
    rules.ignore("vocab_*");
  }
  return rules;
}

}  // namespace

ForeignFamily distilbert_foreign() {
  return {.model_type = "distilbert",
          .doc = "DistilBERT (Sanh et al. 2019)",
          .classes = {{"DistilBertForMaskedLM", "masked_language_modeling"},
                      {"DistilBertForSequenceClassification", "text_classification"},
                      {"DistilBertForTokenClassification", "token_classification"},
                      {"DistilBertModel", "text_features"}},
          .read = read_distilbert,
          .write = write_distilbert,
          .rules = distilbert_rules};
}

}  // namespace zoo
