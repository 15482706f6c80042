#include "pages/attention/image_attention_page.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "analysis/image_attention.h"
#include "base/error.h"
#include "io/json_document.h"
#include "pages/page_picture.h"
#include "pages/page_template.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char image_attention_page[];
}  // namespace embedded

namespace {

constexpr int64_t kMostPackedWeights = 36'000'000;  // a page of about 50 MB, which browsers load slowly

/// (T, S) weights, see the header.
nlohmann::ordered_json packed(const torch::Tensor& weights) {
  constexpr double millionth = 1e-6, most = 255;
  const auto rows = weights.to(torch::kFloat64).contiguous();
  const int64_t T = rows.size(0), S = rows.size(1);
  const double* weight = rows.const_data_ptr<double>();
  std::string bytes;
  auto tops = nlohmann::ordered_json::array();
  for (int64_t t = 0; t < T; ++t, weight += S) {
    const auto top = std::llround(std::ceil(*std::max_element(weight, weight + S) / millionth));
    tops.push_back(top);
    for (int64_t s = 0; s < S; ++s) {
      const double share = top > 0 ? weight[s] / (static_cast<double>(top) * millionth) : 0;
      bytes += static_cast<char>(std::lround(most * std::clamp(share, 0.0, 1.0)));
    }
  }
  return {{"tops", std::move(tops)}, {"rows", to_base64(bytes)}};
}

nlohmann::ordered_json maps_json(const std::vector<AttentionLayer>& layers) {
  auto maps = nlohmann::ordered_json::array();
  for (const auto& [kind, layer, weights] : layers) {
    if (maps.empty() || maps.back()["kind"] != name_of(kind))
      maps.push_back({{"kind", name_of(kind)}, {"layers", nlohmann::ordered_json::array()}});
    auto& heads = maps.back()["layers"].emplace_back(nlohmann::ordered_json::array());
    for (const auto& head : weights.unbind()) heads.push_back(packed(head));
  }
  return maps;
}

nlohmann::ordered_json rollouts_json(const std::vector<Rollout>& rollouts) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [kind, layer, weights] : rollouts) {
    auto map = packed(weights);
    map["kind"] = name_of(kind);
    map["layer"] = layer;
    list.push_back(std::move(map));
  }
  return list;
}

std::string page_data(const AttentionReport& report) {
  auto data = image_json(report);
  data["picture"] = picture_uri(report.image->picture);
  data["maps"] = maps_json(report.layers);
  data["heads"] = parse_ordered_json(to_json(head_statistics(report)));
  data["rollout"] = rollouts_json(attention_rollout(report));
  return as_json_text(data);
}

void check_packed_size(const AttentionReport& report) {
  int64_t weights = 0;
  for (const auto& layer : report.layers) weights += layer.weights.numel();
  if (weights <= kMostPackedWeights) return;
  throw DataError(fmt::format(
      "{}: the maps of {} places are {} million numbers, too many for a page: give a smaller picture, or "
      "write JSON",
      report.image->file, report.source_tokens.size(), weights / 1'000'000));
}

}  // namespace

std::string image_attention_page(const AttentionReport& report) {
  check_packed_size(report);
  const auto name = std::filesystem::path(report.image->file).filename().string();
  return filled_page(embedded::image_attention_page, "Attention: " + name, page_data(report));
}

}  // namespace zoo
