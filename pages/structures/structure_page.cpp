#include "pages/structures/structure_page.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "pages/json.h"
#include "pages/page_template.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char structure_page[];
}  // namespace embedded

namespace {

double rounded(double value) {
  constexpr double digits = 100;
  return std::round(value * digits) / digits;
}

Json trace_json(const CaTrace& trace) {
  const auto positions = trace.positions.contiguous();
  Json places = Json::array(), b_factors = Json::array();
  for (const double x : std::span(positions.const_data_ptr<double>(), static_cast<size_t>(positions.numel())))
    places.push_back(rounded(x));
  for (const double b : trace.b_factors) b_factors.push_back(rounded(b));
  return {{"chains", trace.chains},   {"chain", trace.chain_of},     {"letters", trace.letters},
          {"numbers", trace.numbers}, {"places", std::move(places)}, {"b", std::move(b_factors)}};
}

/// Of many residues the means of blocks.
Json error_json(const torch::Tensor& errors) {
  constexpr int64_t most = 512;
  constexpr double steps = 4, largest = 255;  // of an Å, and of a byte
  if (!errors.defined()) return {};
  const auto n = std::min(errors.size(0), most);
  const auto small = torch::adaptive_avg_pool2d(errors.to(torch::kCPU, torch::kDouble).unsqueeze(0), {n, n});
  const auto bytes = (small * steps).round().clamp(0, largest).to(torch::kUInt8).contiguous();
  const auto* const first = reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>());
  return {{"size", n}, {"rows", to_base64({first, static_cast<size_t>(bytes.numel())})}};
}

Json truth_json(const ShownStructure& shown) {
  if (!shown.truth) return {};
  const auto& truth = *shown.truth;
  return {{"title", shown.truth_title}, {"trace", trace_json(truth.truth)},
          {"pairs", truth.pairs},       {"length", truth.length},
          {"rmsd", truth.rmsd},         {"tm_score", truth.tm_score},
          {"lddt", truth.lddt}};
}

}  // namespace

nlohmann::ordered_json structure_data(const ShownStructure& structure) {
  const auto n = std::ssize(structure.trace.letters);
  if (n > kMostShownResidues) {
    throw DataError(fmt::format("{}: has {} residues, and a page shows at most {}", structure.title, n,
                                kMostShownResidues));
  }
  return {{"title", structure.title},
          {"predicted", structure.origin == StructureOrigin::predicted},
          {"tm_score", or_null(structure.predicted_tm_score)},
          {"trace", trace_json(structure.trace)},
          {"aligned_error", error_json(structure.aligned_error)},
          {"truth", truth_json(structure)}};
}

std::string structure_page(const ShownStructure& structure) {
  return filled_page(embedded::structure_page, "Structure: " + structure.title,
                     as_json_text(structure_data(structure)));
}

}  // namespace zoo
