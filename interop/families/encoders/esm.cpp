// ESM, language models of proteins: ESM-2 (Lin et al. 2023), and ESM-1b and ESM-1v (Rives et al. 2021, Meier
// et al. 2021), which have learned positions.

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "interop/families/common.h"
#include "interop/families/esmfold.h"
#include "interop/families/families.h"

namespace zoo {
namespace {

/// The base of the rotary positions, which only newer files say.
constexpr double kEsmTheta = 10000;

bool folds(const Experiment& experiment) { return experiment.task.type == "structure_prediction"; }

void read_esm(ForeignConfig& from, Experiment& to) {
  auto& model = to.model;
  model.architecture = Architecture::encoder;
  if (folds(to)) read_esmfold(from, model);
  model.vocab_size = from.integer("vocab_size", 33);
  read_bert_keys(from, 0.1, model);
  // The layers have GELU whatever the file says, as their authors' program has it.
  from.ignore({"hidden_act"});
  model.activation = Activation::gelu;
  model.norm_placement = NormPlacement::pre;
  model.embedding_norm = from.flag("emb_layer_norm_before", false);
  const auto pad = from.optional_integer("pad_token_id");
  const double theta = from.number("rope_theta", kEsmTheta);
  const auto positions = from.text("position_embedding_type", "absolute");
  model.max_positions = from.integer("max_position_embeddings", 1026);
  if (positions == "rotary") {
    model.position = Position::rotary;
    model.rotary.theta = theta;
  } else if (positions == "absolute") {
    if (!pad || *pad < 0) from.fail("position_embedding_type", "absolute needs a pad_token_id");
    if (model.max_positions < 2 || *pad >= model.max_positions - 1)
      from.fail("max_position_embeddings", "it leaves no row behind the row of the padding");
    model.position = Position::learned;
    model.position_offset = *pad + 1;
    model.max_positions -= model.position_offset;
  } else {
    from.fail("position_embedding_type", "only rotary and absolute are supported");
  }
  const auto mask = from.optional_integer("mask_token_id");
  if (from.flag("token_dropout", false)) {
    if (!mask) from.fail("token_dropout", "it needs a mask_token_id");
    model.token_dropout = *mask;
  }
  model.contact_regression = true;
  model.tie_embeddings = from.flag("tie_word_embeddings", true);
  model.output_bias = !folds(to);
  model.init_residual_scaling = false;
  if (!from.flag("add_pooling_layer", true) || folds(to)) model.pooler = false;
  if (from.flag("is_folding_model", false) != folds(to))
    from.fail("is_folding_model", "this does not fit the class under architectures");
  from.require("is_decoder", false);
  from.require("add_cross_attention", false);
  from.ignore({"esmfold_config", "vocab_list", "classifier_dropout"});
}

void write_esm(const Experiment& from, nlohmann::json& to) {
  const auto& model = from.model;
  write_bert_keys(model, to);
  to["emb_layer_norm_before"] = model.embedding_norm;
  to["position_embedding_type"] = model.position == Position::rotary ? "rotary" : "absolute";
  to["max_position_embeddings"] = model.max_positions + model.position_offset;
  if (model.position == Position::rotary) to["rope_theta"] = model.rotary.theta;
  to["token_dropout"] = model.token_dropout.has_value();
  if (model.token_dropout) to["mask_token_id"] = *model.token_dropout;
  to["is_folding_model"] = folds(from);
  if (folds(from)) {
    write_esmfold(model, to);
  } else if (!model.pooler) {
    to["add_pooling_layer"] = false;
  }
}

TensorRules esm_rules(const Experiment& experiment) {
  const auto& model = experiment.model;
  const std::string part = folds(experiment) ? "language." : "", ours = part + "encoder.layers.{}.",
                    body = "esm.", theirs = body + "encoder.layer.{}.";
  TensorRules rules;
  rules.layers(model.n_layers);
  if (!folds(experiment)) rules.prefix(body);
  rules.module(part + "token_embedding", body + "embeddings.word_embeddings");
  rules.module(part + "encoder_embedder.position_embedding", body + "embeddings.position_embeddings");
  rules.module(part + "encoder_embedder.embedding_norm", body + "embeddings.layer_norm");
  add_bert_maps(ours, theirs, "attention.self.", rules);
  rules.module(ours + "residual.self_attention_norm", theirs + "attention.LayerNorm");
  rules.module(ours + "residual.feed_forward_norm", theirs + "LayerNorm");
  rules.module(part + "encoder.final_norm", body + "encoder.emb_layer_norm_after");
  rules.module(part + "contact_regression", body + "contact_head.regression");
  // A table of 0, 1, … that older versions saved.
  rules.ignore(body + "embeddings.position_ids");
  if (model.position == Position::rotary) {
    const auto frequencies = [width = model.head_width(), theta = model.rotary.theta] {
      return torch::pow(theta, torch::arange(0, width, 2, torch::kFloat) / width).reciprocal();
    };
    const std::string name = "encoder.layer.{}.attention.self.rotary_embeddings.inv_freq";
    for (int64_t layer = 0; layer < model.n_layers; ++layer)
      rules.buffer(body + fmt::format(fmt::runtime(name), layer), frequencies);
    // transformers 5 has one table for all layers, and writes it under the first name.
    rules.computed(body + fmt::format(fmt::runtime(name), "*"), frequencies);
    rules.computed(body + "rotary_embeddings.inv_freq", frequencies);
    // Published files have a table of positions that is not used.
    rules.ignore(body + "embeddings.position_embeddings.weight");
  }
  if (folds(experiment)) {
    add_esmfold_rules(model, rules);
  } else {
    add_roberta_head(experiment, body, rules);
  }
  return rules;
}

}  // namespace

ForeignFamily esm_foreign() {
  return {.model_type = "esm",
          .doc = "ESM-2 (Lin et al. 2023), ESM-1b, ESM-1v, ESMFold: proteins",
          .classes = {{"EsmForMaskedLM", "masked_language_modeling"},
                      {"EsmForSequenceClassification", "text_classification"},
                      {"EsmForTokenClassification", "token_classification"},
                      {"EsmModel", "text_features"},
                      {"EsmForProteinFolding", "structure_prediction"}},
          .read = read_esm,
          .write = write_esm,
          .rules = esm_rules};
}

}  // namespace zoo
