#include "pages/labels/labels_page.h"

#include <cmath>

#include "pages/json.h"
#include "pages/page_template.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char labels_page[];
}  // namespace embedded

namespace {

Json text_data(const LabelledText& text) {
  Json tokens = Json::array(), labels = Json::array(), probabilities = Json::array();
  for (const auto& token : text.prediction.tokens.value()) {
    tokens.push_back(token.token);
    labels.push_back(token.has_class() ? token.predicted.label : "-");  // labels_page.js: UNKNOWN
    probabilities.push_back(std::lround(100 * token.predicted.probability));
  }
  return {{"tokens", std::move(tokens)},
          {"labels", std::move(labels)},
          {"probabilities", std::move(probabilities)},
          {"truth", text.truth.empty() ? Json() : Json(text.truth)}};
}

}  // namespace

std::string labels_page(const std::string& title, const std::vector<LabelledText>& texts) {
  Json data{{"title", title}, {"texts", Json::array()}};
  for (const auto& text : texts) data["texts"].push_back(text_data(text));
  return filled_page(embedded::labels_page, "Labels: " + title, as_json_text(data));
}

}  // namespace zoo
