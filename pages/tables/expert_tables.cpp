#include "pages/tables/expert_tables.h"

#include <cstdint>
#include <string>

#include "pages/tables/report_document.h"

namespace zoo {

std::vector<LayerLoad> expert_loads_of(const Json& run) {
  std::vector<LayerLoad> layers;
  const Json& experts = member(run, "experts");
  if (!experts.is_array()) return {};
  for (const auto& layer : experts) {
    const Json &place = member(layer, "place"), &tokens = member(layer, "tokens");
    if (!place.is_string() || !is_list_of_counts(tokens) || tokens.empty()) return {};
    layers.push_back({.place = place.get<std::string>(), .tokens = tokens.get<std::vector<int64_t>>()});
  }
  return layers;
}

}  // namespace zoo
