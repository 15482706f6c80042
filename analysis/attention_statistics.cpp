#include "analysis/attention_statistics.h"

#include <cmath>

#include <nlohmann/json.hpp>
#include <torch/types.h>

namespace zoo {
namespace {

/// Σ_s w[t,s] cost[t,s], mean over the rows. weights: (H, T, S), cost: (T, S); gives (H).
torch::Tensor expected(const torch::Tensor& weights, const torch::Tensor& cost) {
  return (weights * cost).sum(-1).mean(-1);
}

std::vector<HeadStatistics> statistics_of(const AttentionLayer& layer) {
  const auto weights = layer.weights.to(torch::kFloat64);  // (H, T, S)
  const int64_t T = weights.size(1), S = weights.size(2);
  const auto t = torch::arange(T, torch::kFloat64).unsqueeze(1), s = torch::arange(S, torch::kFloat64);
  const bool is_self = layer.kind != AttentionKind::cross;

  const auto negative_entropy = torch::xlogy(weights, weights).sum(-1).mean(-1);
  const auto first = weights.select(2, 0).mean(-1);
  const auto distance = expected(weights, (t - s).abs());
  const auto previous = weights.diagonal(-1, 1, 2).mean(-1);
  const auto itself = weights.diagonal(0, 1, 2).mean(-1);
  const auto error =
      expected(weights, ((s + 0.5) / static_cast<double>(S) - (t + 0.5) / static_cast<double>(T)).abs());

  std::vector<HeadStatistics> heads;
  for (int64_t h = 0; h < weights.size(0); ++h) {
    auto& head = heads.emplace_back();
    head.kind = layer.kind;
    head.layer = layer.layer;
    head.head = h;
    head.entropy = 0 - negative_entropy[h].item<double>();  // a head on one token gets 0, not -0
    head.first = first[h].item<double>();
    if (is_self) {
      head.distance = distance[h].item<double>();
      head.itself = itself[h].item<double>();
      if (T > 1) head.previous = previous[h].item<double>();
    } else {
      head.alignment_error = error[h].item<double>();
    }
  }
  return heads;
}

nlohmann::ordered_json rounded(std::optional<double> value) {
  return value ? nlohmann::ordered_json(std::round(*value * 1e6) / 1e6) : nullptr;
}

}  // namespace

std::vector<HeadStatistics> head_statistics(const AttentionReport& report) {
  std::vector<HeadStatistics> heads;
  for (const auto& layer : report.layers) {
    const auto more = statistics_of(layer);
    heads.insert(heads.end(), more.begin(), more.end());
  }
  return heads;
}

std::string to_json(const std::vector<HeadStatistics>& heads) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& head : heads) {
    list.push_back({{"kind", name_of(head.kind)},
                    {"layer", head.layer},
                    {"head", head.head},
                    {"entropy", rounded(head.entropy)},
                    {"distance", rounded(head.distance)},
                    {"first", rounded(head.first)},
                    {"previous", rounded(head.previous)},
                    {"itself", rounded(head.itself)},
                    {"alignment_error", rounded(head.alignment_error)}});
  }
  return list.dump();
}

}  // namespace zoo
