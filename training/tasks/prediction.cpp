#include "training/tasks/prediction.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace zoo {
namespace {

std::span<const LabelProbability> first_labels(const Prediction& prediction, int64_t top) {
  return std::span(prediction.labels)
      .first(static_cast<size_t>(std::min(top, std::ssize(prediction.labels))));
}

}  // namespace

std::string to_json(const std::vector<Prediction>& predictions, int64_t top) {
  auto results = nlohmann::ordered_json::array();
  for (const auto& prediction : predictions) {
    auto labels = nlohmann::ordered_json::array();
    for (const auto& [label, probability] : first_labels(prediction, top))
      labels.push_back({{"label", label}, {"probability", probability}});
    results.push_back({{"input", prediction.input}, {"labels", std::move(labels)}});
  }
  const nlohmann::ordered_json document{{"results", std::move(results)}};
  // A byte model may read bytes that are not UTF-8: they become U+FFFD.
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string to_text(const std::vector<Prediction>& predictions, int64_t top) {
  std::string text;
  for (const auto& prediction : predictions) {
    const char* separator = "";
    for (const auto& [label, probability] : first_labels(prediction, top)) {
      text += fmt::format("{}{}\t{:.4f}", separator, excerpt(label, std::string::npos), probability);
      separator = "\t";
    }
    text += '\n';
  }
  return text;
}

}  // namespace zoo
