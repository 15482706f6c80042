#include "pages/labels_page.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pages/json.h"
#include "pages/page_template.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char labels_page[];
}  // namespace embedded

namespace {

/// How sure the model is of what it says of a token: of its class, or of the labels that it gives and leaves
/// out, of which the least sure counts.
double certainty_of(const std::vector<LabelProbability>& labels, Problem problem) {
  if (problem == Problem::single_label) return labels.front().probability;
  double least = 1;
  for (const auto& [label, probability] : labels)
    least = std::min(least, std::max(probability, 1 - probability));
  return least;
}

/// The class of a token, or the labels that it is likely to have, sorted.
std::string label_text(const std::vector<LabelProbability>& labels, Problem problem) {
  if (problem == Problem::single_label) return labels.front().label;
  constexpr double half = 0.5;
  std::set<std::string> likely;
  for (const auto& [label, probability] : labels) {
    if (probability >= half) likely.insert(label);
  }
  return likely.empty() ? "O" : fmt::format("{}", fmt::join(likely, ", "));
}

Json text_data(const LabelledText& text, const PredictedTokens& said) {
  Json tokens = Json::array(), labels = Json::array(), probabilities = Json::array();
  for (const auto& token : said.tokens) {
    tokens.push_back(token.token);
    // labels_page.js: UNKNOWN
    labels.push_back(token.has_class() ? label_text(token.labels, said.problem) : "-");
    probabilities.push_back(std::lround(100 * certainty_of(token.labels, said.problem)));
  }
  return {{"tokens", std::move(tokens)},
          {"labels", std::move(labels)},
          {"probabilities", std::move(probabilities)},
          {"truth", text.truth.empty() ? Json() : Json(text.truth)}};
}

Json whole_text_data(const LabelledText& text) {
  const auto said = Json::parse(to_json({text.prediction}))["results"][0];
  Json data{{"text", text.prediction.input}};
  if (said.contains("score")) data["score"] = said["score"];
  if (said.contains("labels")) data["answers"] = said["labels"];
  data["truth"] = text.truth.empty() ? Json() : Json(text.truth);
  return data;
}

}  // namespace

std::string labels_page(const std::string& title, const std::vector<LabelledText>& texts) {
  Json data{{"title", title}, {"texts", Json::array()}};
  for (const auto& text : texts) {
    const auto* const tokens = std::get_if<PredictedTokens>(&text.prediction.answer);
    data["texts"].push_back(tokens ? text_data(text, *tokens) : whole_text_data(text));
  }
  return filled_page(embedded::labels_page, "Labels: " + title, as_json_text(data));
}

}  // namespace zoo
