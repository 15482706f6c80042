#include "analysis/contacts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "analysis/attention_maps.h"
#include "analysis/text_layout.h"
#include "base/error.h"
#include "io/json_document.h"
#include "models/contact_regression.h"
#include "models/families/families.h"
#include "models/inference_scope.h"

namespace zoo {

const ContactRegressionImpl& regression_of(const Run& run) {
  for (const auto& module : run.model().modules()) {
    if (const auto* const found = dynamic_cast<const ContactRegressionImpl*>(module.get())) return *found;
  }
  throw UsageError(fmt::format(
      "{}: this run has no regression from attention to contacts (model.contact_regression): fit one to "
      "known structures (--fit), or use a published ESM model",
      run.dir().string()));
}

torch::Tensor residue_maps(Model& model, const Tokenizer& tokenizer, const std::string& text,
                           std::vector<std::string>& labels) {
  const auto frame = encoder_frame(tokenizer, "a map of contacts");
  auto ids = encode_text(tokenizer, text, TextLayout::cls_tokens_sep);
  if (ids.empty()) throw DataError("the text has no residues: give another text");
  labels.clear();
  for (const int64_t id : ids) labels.push_back(tokenizer.label(id));
  const auto n = std::ssize(ids);
  ids = with_special_tokens(tokenizer, std::move(ids), TextLayout::cls_tokens_sep);
  Batch batch;
  batch.input.ids = torch::tensor(ids, torch::kInt64).unsqueeze(0);

  const InferenceScope scope(model);
  std::vector<torch::Tensor> maps;  // (H, T, T) of each layer, without the special tokens
  for (const auto& layer : attention_layers(model, batch.to(model.device()))) {
    const auto n_before = std::ssize(frame.before);
    maps.push_back(layer.weights.narrow(1, n_before, n).narrow(2, n_before, n));
  }
  return torch::cat(maps).to(model.device());
}

void require_maps(const Run& run) {
  if (const auto problem = why_no_maps(run.experiment().model))
    throw UsageError(*problem + ": choose another run");
}

ContactMap contact_map(const Run& run, const std::string& text, const ContactRegressionImpl& regression) {
  require_maps(run);
  ContactMap map{.text = text};
  const auto maps = residue_maps(run.model(), run.tokenizer(), text, map.residues);
  const torch::NoGradGuard no_grad;
  map.probabilities = regression.forward(maps).to(torch::kCPU, torch::kDouble).contiguous();
  return map;
}

ContactMap contact_map(const Run& run, const std::string& text) {
  return contact_map(run, text, regression_of(run));
}

std::vector<Contact> likeliest_contacts(const ContactMap& map, int64_t separation, int64_t most) {
  const int64_t n = map.probabilities.size(0);
  const auto values = map.probabilities.accessor<double, 2>();
  std::vector<Contact> contacts;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + std::max<int64_t>(separation, 1); j < n; ++j)
      contacts.push_back({.first = i, .second = j, .probability = values[i][j]});
  }
  std::ranges::stable_sort(contacts, std::greater(), &Contact::probability);
  if (std::ssize(contacts) > most) contacts.resize(static_cast<size_t>(most));
  return contacts;
}

std::string to_json(const ContactMap& map) {
  constexpr double digits = 1e6;
  nlohmann::ordered_json document{{"text", map.text}, {"residues", map.residues}};
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : map.probabilities.unbind()) {
    auto values = nlohmann::ordered_json::array();
    for (int64_t j = 0; j < row.size(0); ++j)
      values.push_back(std::round(row[j].item<double>() * digits) / digits);
    rows.push_back(std::move(values));
  }
  document["contacts"] = std::move(rows);
  return json_text(document);
}

Image picture_of(const ContactMap& map, int64_t scale) {
  constexpr double white = 255;
  const auto shades = ((1 - map.probabilities) * white).round().to(torch::kUInt8);
  const auto large = shades.repeat_interleave(scale, 0).repeat_interleave(scale, 1).contiguous();
  const auto* const pixels = large.const_data_ptr<uint8_t>();
  return {.shape = {.channels = 1, .height = large.size(0), .width = large.size(1)},
          .pixels = std::vector<uint8_t>(pixels, pixels + large.numel())};
}

}  // namespace zoo
