// DeBERTa 2 and 3 (He et al. 2021): BERT with disentangled attention. Version 3 has no other positions.

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"
#include "models/mixers/disentangled_attention.h"

namespace zoo {
namespace {

/// Which parts a score has beside the product of contents: a list, or names between bars, as "p2c|c2p".
std::vector<std::string> read_parts(ForeignConfig& from) {
  constexpr const char* key = "pos_att_type";
  const auto& json = from.json();
  if (!json.contains(key) || !json[key].is_string()) return from.texts(key);
  std::vector<std::string> parts(1);
  for (const char letter : from.text(key)) {
    if (letter == '|')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

void read_relative_attention(ForeignConfig& from, ModelConfig& model) {
  DisentangledKeys keys{.buckets = std::max<int64_t>(from.integer("position_buckets", -1), 0),
                        .max_distance = from.integer("max_relative_positions", -1),
                        .content_to_position = false,
                        .position_to_content = false,
                        .share_keys = from.flag("share_att_key", false)};
  if (keys.max_distance < 1) keys.max_distance = model.max_positions;
  for (const auto& part : read_parts(from)) {
    if (part == "c2p")
      keys.content_to_position = true;
    else if (part == "p2c")
      keys.position_to_content = true;
    else
      from.fail("pos_att_type", "only c2p and p2c are supported");
  }
  const auto norm = from.text("norm_rel_ebd", "none");
  if (norm != "none" && norm != "layer_norm")
    from.fail("norm_rel_ebd", "only none and layer_norm are supported");
  keys.norm = norm == "layer_norm";
  const bool has_parts = keys.content_to_position || keys.position_to_content;
  const bool is_relative = from.flag("relative_attention", false);
  if (is_relative != has_parts) from.fail("relative_attention", "pos_att_type says something else");
  if (is_relative) model.attention = {Selection("disentangled", keys)};
}

void read_deberta(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder;
  model.vocab_size = from.integer("vocab_size", 128100);
  model.d_model = from.integer("hidden_size", 1536);
  model.n_layers = from.integer("num_hidden_layers", 24);
  model.n_heads = from.integer("num_attention_heads", 24);
  model.head_dim = from.optional_integer("attention_head_size");
  model.d_ff = from.integer("intermediate_size", 6144);
  model.norm_eps = from.number("layer_norm_eps", 1e-7);
  model.dropout = from.number("hidden_dropout_prob", 0.1);
  model.attention_dropout = from.number("attention_probs_dropout_prob", 0.1);
  model.activation = read_activation(from, "hidden_act", "gelu");
  model.norm_placement = NormPlacement::post;
  model.embedding_norm = true;
  model.max_positions = from.integer("max_position_embeddings", 512);
  model.position = from.flag("position_biased_input", true) ? Position::learned : Position::none;
  model.n_segments = from.integer("type_vocab_size", 0);
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.output_bias = true;
  model.init_residual_scaling = false;
  model.pooler = to.task.type == "text_classification";
  if (model.pooler) {
    const auto activation = read_activation(from, "pooler_hidden_act", "gelu");
    if (activation != Activation::gelu) from.fail("pooler_hidden_act", "only gelu is supported");
    model.pooler_activation = PoolerActivation::gelu;
  }
  read_relative_attention(from, model);
  from.require("embedding_size", model.d_model);
  from.require("pooler_hidden_size", model.d_model);
  // A convolution beside the first layer, which the two largest models of version 2 have.
  from.require("conv_kernel_size", 0);
  if (!from.flag("legacy", true) && fills_masks(to) && !model.tie_embeddings)
    from.fail("legacy", "this head has the matrix of the embeddings: tie_word_embeddings must be true");
  from.ignore({"pooler_hidden_act", "pooler_dropout", "cls_dropout", "conv_act", "conv_groups", "legacy"});
}

void write_deberta(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  write_bert_keys(model, to);
  to["hidden_act"] = foreign_name(model.activation);
  if (model.head_width() != model.d_model / model.n_heads) to["attention_head_size"] = model.head_width();
  to["max_position_embeddings"] = model.max_positions;
  to["position_biased_input"] = model.position == Position::learned;
  to["type_vocab_size"] = model.n_segments;
  to["pooler_hidden_size"] = model.d_model;
  const auto& mixer = model.attention_of(0);
  const bool is_relative = mixer.type == "disentangled";
  to["relative_attention"] = is_relative;
  to["pos_att_type"] = nlohmann::json::array();
  if (!is_relative) return;
  const auto& keys = mixer.as<DisentangledKeys>();
  if (keys.position_to_content) to["pos_att_type"].push_back("p2c");
  if (keys.content_to_position) to["pos_att_type"].push_back("c2p");
  to["position_buckets"] = keys.buckets > 0 ? keys.buckets : -1;
  to["max_relative_positions"] = keys.max_distance;
  to["share_att_key"] = keys.share_keys;
  to["norm_rel_ebd"] = keys.norm ? "layer_norm" : "none";
}

/// The vectors of distances have a name of ours that says how many there are.
std::string vectors_of(const ModelConfig& model) {
  const auto& mixer = model.attention_of(0);
  const DisentangledKeys usual;
  const auto& keys = mixer.type == "disentangled" ? mixer.as<DisentangledKeys>() : usual;
  return "encoder." + name_of_vectors(keys);
}

/// `config` says which of two heads for masked tokens the file has.
TensorRules deberta_rules(const Experiment& experiment, const nlohmann::json& config) {
  const std::string body = "deberta.", ours = "encoder.layers.{}.", theirs = body + "encoder.layer.{}.";
  TensorRules rules;
  rules.prefix(body).layers(experiment.model.n_layers);
  rules.module("token_embedding", body + "embeddings.word_embeddings");
  rules.module("encoder_embedder.position_embedding", body + "embeddings.position_embeddings");
  rules.module("encoder_embedder.segment_embedding", body + "embeddings.token_type_embeddings");
  rules.module("encoder_embedder.embedding_norm", body + "embeddings.LayerNorm");
  rules.module(vectors_of(experiment.model) + ".table", body + "encoder.rel_embeddings");
  rules.module(vectors_of(experiment.model) + ".norm", body + "encoder.LayerNorm");
  const std::string attention = theirs + "attention.self.";
  rules.module(ours + "self_attention.q", attention + "query_proj");
  rules.module(ours + "self_attention.k", attention + "key_proj");
  rules.module(ours + "self_attention.v", attention + "value_proj");
  rules.module(ours + "self_attention.position_key", attention + "pos_key_proj");
  rules.module(ours + "self_attention.position_query", attention + "pos_query_proj");
  rules.module(ours + "self_attention.out", theirs + "attention.output.dense");
  rules.module(ours + "residual.self_attention_norm", theirs + "attention.output.LayerNorm");
  rules.module(ours + "feed_forward.up", theirs + "intermediate.dense");
  rules.module(ours + "feed_forward.down", theirs + "output.dense");
  rules.module(ours + "residual.feed_forward_norm", theirs + "output.LayerNorm");
  rules.ignore(body + "embeddings.position_ids");
  // transformers does not read the table, either, where positions are not added.
  if (experiment.model.position == Position::none) rules.ignore(body + "embeddings.position_embeddings.*");
  if (fills_masks(experiment)) {
    const bool is_legacy = config.value("legacy", true);
    if (is_legacy) {
      add_masked_head(experiment,
                      {.transform = "cls.predictions.transform.dense",
                       .norm = "cls.predictions.transform.LayerNorm",
                       .output = "cls.predictions.",
                       .table = body + "embeddings.word_embeddings"},
                      rules);
    } else {
      rules.module("head.transform", "lm_predictions.lm_head.dense");
      rules.module("head.norm", "lm_predictions.lm_head.LayerNorm");
      rules.tensor("head.output.bias", "lm_predictions.lm_head.bias");
    }
    rules.ignore(is_legacy ? "lm_predictions.*" : "cls.*");
  } else {
    rules.module("head.pooler", "pooler.dense");
    rules.module("head.classifier", "classifier");
    rules.ignore("cls.*").ignore("lm_predictions.*");
  }
  // The head of version 3's first training.
  rules.ignore("mask_predictions.*");
  return rules;
}

}  // namespace

ForeignFamily deberta_v2_foreign() {
  return {.model_type = "deberta-v2",
          .doc = "DeBERTa 2 and 3 (He et al. 2021): BERT with disentangled attention",
          .classes = {{"DebertaV2ForMaskedLM", "masked_language_modeling"},
                      {"DebertaV2ForSequenceClassification", "text_classification"},
                      {"DebertaV2ForTokenClassification", "token_classification"},
                      {"DebertaV2Model", "text_features"}},
          .read = read_deberta,
          .write = write_deberta,
          .rules_of_file = deberta_rules};
}

}  // namespace zoo
