// Encoders like BERT whose tables are narrower than their layers: ALBERT (Lan et al. 2020), whose layers also
// have the same weights, and ELECTRA (Clark et al. 2020).

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

bool classifies_texts(const Experiment& experiment) { return experiment.task.type == "text_classification"; }

/// Sizes and tables; without the map that follows the tables.
void read_narrow_bert(ForeignConfig& from, double usual_dropout, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder;
  read_bert_keys(from, usual_dropout, model);
  model.norm_placement = NormPlacement::post;
  model.embedding_norm = true;
  model.position = Position::learned;
  model.max_positions = from.integer("max_position_embeddings", 512);
  model.n_segments = from.integer("type_vocab_size", 2);
  if (model.n_segments < 1)
    from.fail("type_vocab_size", "a model without segments is not supported: at least 1");
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.output_bias = true;
  model.init_residual_scaling = false;
  from.require("position_embedding_type", "absolute");
  from.require("is_decoder", false);
  from.require("add_cross_attention", false);
}

void write_narrow_bert(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  write_bert_keys(model, to);
  to["hidden_act"] = foreign_name(model.activation);
  to["embedding_size"] = model.table_width();
  to["type_vocab_size"] = model.n_segments;
  to["max_position_embeddings"] = model.max_positions;
}

/// The tables and their norm below `body`, "albert." for example.
void add_tables(const std::string& body, TensorRules& rules) {
  rules.module("token_embedding", body + "embeddings.word_embeddings");
  rules.module("encoder_embedder.position_embedding", body + "embeddings.position_embeddings");
  rules.module("encoder_embedder.segment_embedding", body + "embeddings.token_type_embeddings");
  rules.module("encoder_embedder.embedding_norm", body + "embeddings.LayerNorm");
  // Tables of 0, 1, … and of zeros that older versions saved.
  rules.ignore(body + "embeddings.position_ids").ignore(body + "embeddings.token_type_ids");
}

void read_albert(ForeignConfig& from, Experiment& to) {
  read_narrow_bert(from, 0, to);
  auto& model = to.model;
  model.vocab_size = from.integer("vocab_size", 30000);
  // transformers' own values for these three are those of the largest ALBERT.
  model.d_model = from.integer("hidden_size", 4096);
  model.n_heads = from.integer("num_attention_heads", 64);
  model.d_ff = from.integer("intermediate_size", 16384);
  model.activation = read_activation(from, "hidden_act", "gelu_new");
  model.embedding_width = from.integer("embedding_size", 128);
  model.layer_groups = from.integer("num_hidden_groups", 1);
  if (*model.layer_groups < 1 || model.n_layers % *model.layer_groups != 0)
    from.fail("num_hidden_groups", "the number of layers must be a multiple of it");
  from.require("inner_group_num", 1);
  from.require("layers_to_keep", nlohmann::json::array());  // a key that transformers does not read
  from.ignore({"classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type",
               "num_memory_blocks"});
}

void write_albert(const Experiment& from, nlohmann::json& to) {
  write_narrow_bert(from, to);
  to["num_hidden_groups"] = from.model.layer_groups.value_or(from.model.n_layers);
  to["inner_group_num"] = 1;
}

TensorRules albert_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string body = "albert.", ours = "encoder.layers.{}.",
                    theirs = body + "encoder.albert_layer_groups.{}.albert_layers.0.";
  TensorRules rules;
  rules.prefix(body).layers(model.layer_groups.value_or(model.n_layers));
  add_tables(body, rules);
  rules.module("encoder_embedder.embedding_map", body + "encoder.embedding_hidden_mapping_in");
  rules.module(ours + "self_attention.q", theirs + "attention.query");
  rules.module(ours + "self_attention.k", theirs + "attention.key");
  rules.module(ours + "self_attention.v", theirs + "attention.value");
  rules.module(ours + "self_attention.out", theirs + "attention.dense");
  rules.module(ours + "residual.self_attention_norm", theirs + "attention.LayerNorm");
  rules.module(ours + "feed_forward.up", theirs + "ffn");
  rules.module(ours + "feed_forward.down", theirs + "ffn_output");
  rules.module(ours + "residual.feed_forward_norm", theirs + "full_layer_layer_norm");
  if (fills_masks(experiment)) {
    add_masked_head(experiment,
                    {.transform = "predictions.dense",
                     .norm = "predictions.LayerNorm",
                     .output = "predictions.",
                     .table = body + "embeddings.word_embeddings"},
                    rules);
    rules.ignore("sop_classifier.*").ignore(body + "pooler.*");
    return rules;
  }
  rules.module("head.classifier", "classifier");
  rules.ignore("predictions.*").ignore("sop_classifier.*");
  if (experiment.task.type == "token_classification")
    rules.ignore(body + "pooler.*");
  else
    rules.module("head.pooler", body + "pooler");
  return rules;
}

void read_electra(ForeignConfig& from, Experiment& to) {
  read_narrow_bert(from, 0.1, to);
  auto& model = to.model;
  model.vocab_size = from.integer("vocab_size", 30522);
  // transformers' own values for these three are those of the small ELECTRA.
  model.d_model = from.integer("hidden_size", 256);
  model.n_heads = from.integer("num_attention_heads", 4);
  model.d_ff = from.integer("intermediate_size", 1024);
  model.activation = read_activation(from, "hidden_act", "gelu");
  if (const int64_t width = from.integer("embedding_size", 128); width != model.d_model)
    model.embedding_width = width;
  require_gelu_to_fill_masks(from, to);
  // No ELECTRA but a classifier has a pooler, and its activation is always this one.
  model.pooler = classifies_texts(to);
  if (model.pooler) model.pooler_activation = PoolerActivation::gelu;
  // These keys are for a head that no class here has.
  from.ignore({"classifier_dropout", "summary_activation", "summary_last_dropout", "summary_first_dropout",
               "summary_type", "summary_use_proj", "summary_proj_to_labels"});
}

TensorRules electra_rules(const Experiment& experiment) {
  const std::string body = "electra.", ours = "encoder.layers.{}.", theirs = body + "encoder.layer.{}.";
  TensorRules rules;
  rules.prefix(body).layers(experiment.model.n_layers);
  add_tables(body, rules);
  rules.module("encoder_embedder.embedding_map", body + "embeddings_project");
  add_bert_maps(ours, theirs, "attention.self.", rules);
  rules.module(ours + "residual.self_attention_norm", theirs + "attention.output.LayerNorm");
  rules.module(ours + "residual.feed_forward_norm", theirs + "output.LayerNorm");
  if (fills_masks(experiment)) {
    rules.module("head.transform", "generator_predictions.dense");
    rules.module("head.norm", "generator_predictions.LayerNorm");
    rules.module("head.output", "generator_lm_head");
    if (experiment.model.tie_embeddings)
      rules.tied("generator_lm_head.weight", body + "embeddings.word_embeddings.weight");
    return rules;
  }
  rules.module("head.pooler", "classifier.dense");
  rules.module("head.classifier", classifies_texts(experiment) ? "classifier.out_proj" : "classifier");
  // The heads of the training of both.
  rules.ignore("discriminator_predictions.*").ignore("generator_*");
  return rules;
}

}  // namespace

ForeignFamily albert_foreign() {
  return {.model_type = "albert",
          .doc = "ALBERT (Lan et al. 2020): BERT with narrow tables, whose layers have the same weights",
          .classes = {{"AlbertForMaskedLM", "masked_language_modeling"},
                      {"AlbertForPreTraining", "masked_language_modeling"},
                      {"AlbertForSequenceClassification", "text_classification"},
                      {"AlbertForTokenClassification", "token_classification"},
                      {"AlbertModel", "text_features"}},
          .read = read_albert,
          .write = write_albert,
          .rules = albert_rules};
}

ForeignFamily electra_foreign() {
  return {.model_type = "electra",
          .doc = "ELECTRA (Clark et al. 2020): generators, and discriminators without their first head",
          .classes = {{"ElectraForMaskedLM", "masked_language_modeling"},
                      {"ElectraForSequenceClassification", "text_classification"},
                      {"ElectraForTokenClassification", "token_classification"},
                      {"ElectraModel", "text_features"},
                      {"ElectraForPreTraining", "text_features"}},
          .read = read_electra,
          .write = write_narrow_bert,
          .rules = electra_rules};
}

}  // namespace zoo
