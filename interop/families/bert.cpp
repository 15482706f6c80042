// BERT (Devlin et al. 2019) and its kindred: RoBERTa (Liu et al. 2019), XLM-RoBERTa (Conneau et al. 2020) and
// BigBird (Zaheer et al. 2020).

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"
#include "models/mixers/blocks.h"

namespace zoo {

void read_bert_keys(ForeignConfig& from, double usual_dropout, ModelConfig& to) {
  to.d_model = from.integer("hidden_size", 768);
  to.n_layers = from.integer("num_hidden_layers", 12);
  to.n_heads = from.integer("num_attention_heads", 12);
  to.d_ff = from.integer("intermediate_size", 3072);
  to.norm_eps = from.number("layer_norm_eps", 1e-12);
  to.dropout = from.number("hidden_dropout_prob", usual_dropout);
  to.attention_dropout = from.number("attention_probs_dropout_prob", usual_dropout);
}

void write_bert_keys(const ModelConfig& from, nlohmann::json& to) {
  to["hidden_size"] = from.d_model;
  to["num_hidden_layers"] = from.n_layers;
  to["num_attention_heads"] = from.n_heads;
  to["intermediate_size"] = from.feed_forward_width();
  to["layer_norm_eps"] = from.norm_eps;
  to["hidden_dropout_prob"] = from.dropout;
  to["attention_probs_dropout_prob"] = from.attention_dropout;
}

void add_bert_maps(const std::string& ours, const std::string& theirs, const std::string& attention,
                   TensorRules& rules) {
  rules.module(ours + "self_attention.q", theirs + attention + "query");
  rules.module(ours + "self_attention.k", theirs + attention + "key");
  rules.module(ours + "self_attention.v", theirs + attention + "value");
  rules.module(ours + "self_attention.out", theirs + "attention.output.dense");
  rules.module(ours + "feed_forward.up", theirs + "intermediate.dense");
  rules.module(ours + "feed_forward.down", theirs + "output.dense");
}

namespace {

bool labels_tokens(const Experiment& experiment) { return experiment.task.type == "token_classification"; }

/// The values of keys that a config.json may lack.
struct BertDefaults {
  int64_t vocab_size = 30522;
  std::string activation = "gelu";
};

void read_bert_like(ForeignConfig& from, const BertDefaults& defaults, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder;
  model.vocab_size = from.integer("vocab_size", defaults.vocab_size);
  read_bert_keys(from, 0.1, model);
  model.activation = read_activation(from, "hidden_act", defaults.activation);
  model.norm_placement = NormPlacement::post;
  model.embedding_norm = true;
  model.position = Position::learned;
  model.n_segments = from.integer("type_vocab_size", 2);
  if (model.n_segments < 1) from.fail("type_vocab_size", "a model without segments is no BERT: at least 1");
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.output_bias = true;
  // An argument of transformers' classes. A config.json that is made from a GGUF file has it as a key.
  if (!from.flag("add_pooling_layer", true)) model.pooler = false;
  model.init_residual_scaling = false;
  from.require("position_embedding_type", "absolute");
  from.require("is_decoder", false);
  from.require("add_cross_attention", false);
  from.ignore({"classifier_dropout", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
               "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"});
}

void read_bert(ForeignConfig& from, Experiment& to) {
  read_bert_like(from, {}, to);
  to.model.max_positions = from.integer("max_position_embeddings", 512);
}

/// transformers reads sequences of at most so many blocks, and so many for each random one, without gaps.
constexpr int64_t kFullBlocks = 5, kFullBlocksForRandom = 2;

void read_big_bird(ForeignConfig& from, Experiment& to) {
  read_bert_like(from, {.vocab_size = 50358, .activation = "gelu_new"}, to);
  auto& model = to.model;
  model.max_positions = from.integer("max_position_embeddings", 4096);
  model.scale_embeddings = from.flag("rescale_embeddings", false);
  model.qkv_bias = from.flag("use_bias", true);
  const auto type = from.text("attention_type", "block_sparse");
  const int64_t size = from.integer("block_size", 64), n_random = from.integer("num_random_blocks", 3);
  if (type == "block_sparse") {
    BlocksConfig blocks{.size = size, .n_random = n_random};
    blocks.full_up_to = (kFullBlocks + kFullBlocksForRandom * n_random) * size;
    model.attention = {Selection("blocks", blocks)};
  } else if (type != "original_full") {
    from.fail("attention_type", "only block_sparse and original_full are supported");
  }
  if (to.task.type != "text_classification") return;
  // The pooler of its classifier has the activation of the layers.
  if (model.activation == Activation::gelu_tanh) {
    model.pooler_activation = PoolerActivation::gelu_tanh;
  } else if (model.activation == Activation::gelu) {
    model.pooler_activation = PoolerActivation::gelu;
  } else if (model.activation == Activation::relu) {
    model.pooler_activation = PoolerActivation::relu;
  } else {
    from.fail("hidden_act", "only gelu, gelu_new and relu are supported in a classifier");
  }
}

/// The first position of a token is row 2 of the table: the row of the padding's id, 1, comes before.
constexpr int64_t kRobertaOffset = 2;

void read_roberta(ForeignConfig& from, Experiment& to) {
  read_bert_like(from, {}, to);
  to.model.position_offset = kRobertaOffset;
  to.model.max_positions = from.integer("max_position_embeddings", 512) - kRobertaOffset;
  require_gelu_to_fill_masks(from, to);
  if (from.json().contains("pad_token_id")) from.require("pad_token_id", kRobertaOffset - 1);
}

void write_bert_like(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  write_bert_keys(model, to);
  to["hidden_act"] = foreign_name(model.activation);
  to["type_vocab_size"] = model.n_segments;
  to["max_position_embeddings"] = model.max_positions + model.position_offset;
  if (!model.pooler) to["add_pooling_layer"] = false;
}

void write_big_bird(const Experiment& from, nlohmann::json& to) {
  write_bert_like(from, to);
  const auto& model = from.model;
  const auto& attention = model.attention_of(0);
  to["rescale_embeddings"] = model.scale_embeddings;
  to["use_bias"] = model.qkv_bias.value_or(model.bias);
  to["attention_type"] = attention.type == "blocks" ? "block_sparse" : "original_full";
  if (attention.type != "blocks") return;
  to["block_size"] = attention.as<BlocksConfig>().size;
  to["num_random_blocks"] = attention.as<BlocksConfig>().n_random;
}

/// Embeddings and layers below `body`, "bert." for example.
TensorRules body_rules(const Experiment& experiment, const std::string& body) {
  const std::string ours = "encoder.layers.{}.", theirs = body + "encoder.layer.{}.";
  TensorRules rules;
  rules.prefix(body).layers(experiment.model.n_layers);
  rules.module("token_embedding", body + "embeddings.word_embeddings");
  rules.module("encoder_embedder.position_embedding", body + "embeddings.position_embeddings");
  rules.module("encoder_embedder.segment_embedding", body + "embeddings.token_type_embeddings");
  rules.module("encoder_embedder.embedding_norm", body + "embeddings.LayerNorm");
  add_bert_maps(ours, theirs, "attention.self.", rules);
  rules.module(ours + "residual.self_attention_norm", theirs + "attention.output.LayerNorm");
  rules.module(ours + "residual.feed_forward_norm", theirs + "output.LayerNorm");
  // A table of 0, 1, … that older versions saved.
  rules.ignore(body + "embeddings.position_ids");
  return rules;
}

TensorRules bert_rules(const Experiment& experiment) {
  auto rules = body_rules(experiment, "bert.");
  if (fills_masks(experiment)) {
    add_masked_head(experiment,
                    {.transform = "cls.predictions.transform.dense",
                     .norm = "cls.predictions.transform.LayerNorm",
                     .output = "cls.predictions.",
                     .table = "bert.embeddings.word_embeddings"},
                    rules);
    // Parts of the pre-training that masked language modelling does not use.
    rules.ignore("cls.seq_relationship.*").ignore("bert.pooler.*");
  } else if (labels_tokens(experiment)) {
    rules.module("head.classifier", "classifier");
    rules.ignore("bert.pooler.*").ignore("cls.*");
  } else {
    rules.module("head.pooler", "bert.pooler.dense");
    rules.module("head.classifier", "classifier");
    rules.ignore("cls.*");
  }
  return rules;
}

TensorRules big_bird_rules(const Experiment& experiment) {
  if (fills_masks(experiment) || labels_tokens(experiment)) return bert_rules(experiment);
  auto rules = body_rules(experiment, "bert.");
  const bool has_classifier = experiment.task.type == "text_classification";
  rules.module("head.pooler", has_classifier ? "classifier.dense" : "bert.pooler");
  rules.module("head.classifier", "classifier.out_proj");
  rules.ignore("cls.*");
  if (has_classifier) rules.ignore("bert.pooler.*");
  return rules;
}

}  // namespace

void add_roberta_head(const Experiment& experiment, const std::string& body, TensorRules& rules) {
  if (fills_masks(experiment)) {
    add_masked_head(experiment,
                    {.transform = "lm_head.dense",
                     .norm = "lm_head.layer_norm",
                     .output = "lm_head.",
                     .table = body + "embeddings.word_embeddings"},
                    rules);
    rules.ignore(body + "pooler.*");
  } else if (labels_tokens(experiment)) {
    rules.module("head.classifier", "classifier");
    rules.ignore(body + "pooler.*").ignore("lm_head.*");
  } else {
    const bool has_classifier = experiment.task.type == "text_classification";
    rules.module("head.pooler", has_classifier ? "classifier.dense" : body + "pooler.dense");
    rules.module("head.classifier", "classifier.out_proj");
    rules.ignore("lm_head.*");
    if (has_classifier) rules.ignore(body + "pooler.*");
  }
}

TensorRules roberta_rules(const Experiment& experiment, const std::string& body) {
  auto rules = body_rules(experiment, body);
  add_roberta_head(experiment, body, rules);
  return rules;
}

ForeignFamily bert_foreign() {
  return {.model_type = "bert",
          .doc = "BERT (Devlin et al. 2019)",
          .classes = {{"BertForMaskedLM", "masked_language_modeling"},
                      {"BertForPreTraining", "masked_language_modeling"},
                      {"BertForSequenceClassification", "text_classification"},
                      {"BertForTokenClassification", "token_classification"},
                      {"BertModel", "text_features"}},
          .read = read_bert,
          .write = write_bert_like,
          .rules = bert_rules};
}

ForeignFamily big_bird_foreign() {
  return {.model_type = "big_bird",
          .doc = "BigBird (Zaheer et al. 2020): BERT with blocks of keys",
          .classes = {{"BigBirdForMaskedLM", "masked_language_modeling"},
                      {"BigBirdForPreTraining", "masked_language_modeling"},
                      {"BigBirdForSequenceClassification", "text_classification"},
                      {"BigBirdForTokenClassification", "token_classification"},
                      {"BigBirdModel", "text_features"}},
          .read = read_big_bird,
          .write = write_big_bird,
          .rules = big_bird_rules};
}

ForeignFamily roberta_foreign() {
  return {.model_type = "roberta",
          .doc = "RoBERTa (Liu et al. 2019)",
          .classes = {{"RobertaForMaskedLM", "masked_language_modeling"},
                      {"RobertaForSequenceClassification", "text_classification"},
                      {"RobertaForTokenClassification", "token_classification"},
                      {"RobertaModel", "text_features"}},
          .read = read_roberta,
          .write = write_bert_like,
          .rules = [](const Experiment& experiment) { return roberta_rules(experiment, "roberta."); }};
}

ForeignFamily xlm_roberta_foreign() {
  return {.model_type = "xlm-roberta",
          .doc = "XLM-RoBERTa (Conneau et al. 2020): RoBERTa for a hundred languages",
          .classes = {{"XLMRobertaForMaskedLM", "masked_language_modeling"},
                      {"XLMRobertaForSequenceClassification", "text_classification"},
                      {"XLMRobertaForTokenClassification", "token_classification"},
                      {"XLMRobertaModel", "text_features"}},
          .read = read_roberta,
          .write = write_bert_like,
          .rules = [](const Experiment& experiment) { return roberta_rules(experiment, "roberta."); }};
}

}  // namespace zoo
