// MPNet (Song et al. 2020): BERT with learned positions and, for all layers alike, T5's numbers for
// distances.

#include <string>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

/// The first position of a token is row 2 of the table, as in RoBERTa.
constexpr int64_t kMpnetOffset = 2;
/// transformers has these numbers in its program: the key only gives the size of the table.
constexpr int64_t kMpnetBuckets = 32, kMpnetDistance = 128;

void read_mpnet(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder;
  model.vocab_size = from.integer("vocab_size", 30527);
  read_bert_keys(from, 0.1, model);
  model.activation = read_activation(from, "hidden_act", "gelu");
  model.norm_placement = NormPlacement::post;
  model.embedding_norm = true;
  model.position = Position::learned;
  model.position_offset = kMpnetOffset;
  model.max_positions = from.integer("max_position_embeddings", 512) - kMpnetOffset;
  model.score_position = Position::t5;
  model.relative_buckets = kMpnetBuckets;
  model.relative_max_distance = kMpnetDistance;
  from.require("relative_attention_num_buckets", kMpnetBuckets);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.output_bias = true;
  model.init_residual_scaling = false;
  require_gelu_to_fill_masks(from, to);
  if (from.json().contains("pad_token_id")) from.require("pad_token_id", kMpnetOffset - 1);
  from.ignore({"classifier_dropout"});
}

void write_mpnet(const Experiment& from, nlohmann::json& to) {
  write_bert_keys(from.model, to);
  to["hidden_act"] = foreign_name(from.model.activation);
  to["max_position_embeddings"] = from.model.max_positions + kMpnetOffset;
  to["relative_attention_num_buckets"] = from.model.relative_buckets;
}

TensorRules mpnet_rules(const Experiment& experiment) {
  const std::string body = "mpnet.", ours = "encoder.layers.{}.", theirs = body + "encoder.layer.{}.";
  TensorRules rules;
  rules.prefix(body).layers(experiment.model.n_layers);
  rules.module("token_embedding", body + "embeddings.word_embeddings");
  rules.module("encoder_embedder.position_embedding", body + "embeddings.position_embeddings");
  rules.module("encoder_embedder.embedding_norm", body + "embeddings.LayerNorm");
  rules.module("encoder.position_bias.buckets", body + "encoder.relative_attention_bias");
  for (const std::string part : {"q", "k", "v"})
    rules.module(ours + "self_attention." + part, theirs + "attention.attn." + part);
  rules.module(ours + "self_attention.out", theirs + "attention.attn.o");
  rules.module(ours + "residual.self_attention_norm", theirs + "attention.LayerNorm");
  rules.module(ours + "feed_forward.up", theirs + "intermediate.dense");
  rules.module(ours + "feed_forward.down", theirs + "output.dense");
  rules.module(ours + "residual.feed_forward_norm", theirs + "output.LayerNorm");
  // A table of 0, 1, … that older versions saved.
  rules.ignore(body + "embeddings.position_ids");
  add_roberta_head(experiment, body, rules);
  return rules;
}

}  // namespace

ForeignFamily mpnet_foreign() {
  return {.model_type = "mpnet",
          .doc = "MPNet (Song et al. 2020): BERT with numbers for distances, as in T5",
          .classes = {{"MPNetForMaskedLM", "masked_language_modeling"},
                      {"MPNetForSequenceClassification", "text_classification"},
                      {"MPNetForTokenClassification", "token_classification"},
                      {"MPNetModel", "text_features"}},
          .read = read_mpnet,
          .write = write_mpnet,
          .rules = mpnet_rules};
}

}  // namespace zoo
