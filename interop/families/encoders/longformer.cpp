// Longformer (Beltagy et al. 2020): RoBERTa with windows, in which the class token is global.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/families/common.h"
#include "interop/families/families.h"
#include "models/mixers/window.h"

namespace zoo {
namespace {

void read_longformer(ForeignConfig& from, Experiment& to) {
  roberta_foreign().read(from, to);
  const auto windows = from.integer_or_integers("attention_window");
  auto& attention = to.model.attention;
  attention.clear();
  // The key says how many keys both sides of a window have together.
  for (const int64_t size : windows.empty() ? std::vector<int64_t>{512} : windows) {
    attention.emplace_back(
        "window",
        WindowConfig{.size = size / 2, .global = GlobalTokens::class_token, .global_projections = true});
  }
  const bool are_alike = std::ranges::adjacent_find(windows, std::not_equal_to()) == windows.end();
  if (are_alike) attention.resize(1);
  from.ignore({"onnx_export", "sep_token_id", "ignore_attention_mask", "attention_mode"});
}

void write_longformer(const Experiment& from, nlohmann::json& to) {
  roberta_foreign().write(from, to);
  to["attention_window"] = nlohmann::json::array();
  for (int64_t layer = 0; layer < from.model.n_layers; ++layer) {
    const auto& selection = from.model.attention_of(layer);
    to["attention_window"].push_back(selection.type == "window" ? 2 * selection.as<WindowConfig>().size : 0);
  }
}

TensorRules longformer_rules(const Experiment& experiment) {
  auto rules = roberta_rules(experiment, "longformer.");
  rules.renamed("roberta.", "longformer.");  // its authors' own files
  for (const std::string part : {"q", "k", "v"}) {
    const std::string name = part == "q" ? "query" : part == "k" ? "key" : "value";
    rules.module("encoder.layers.{}.self_attention.global_" + part,
                 "longformer.encoder.layer.{}.attention.self." + name + "_global");
  }
  return rules;
}

}  // namespace

ForeignFamily longformer_foreign() {
  return {.model_type = "longformer",
          .doc = "Longformer (Beltagy et al. 2020)",
          .classes = {{"LongformerForMaskedLM", "masked_language_modeling"},
                      {"LongformerForSequenceClassification", "text_classification"},
                      {"LongformerForTokenClassification", "token_classification"},
                      {"LongformerModel", "text_features"}},
          .read = read_longformer,
          .write = write_longformer,
          .rules = longformer_rules};
}

}  // namespace zoo
