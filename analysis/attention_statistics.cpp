#include "analysis/attention_statistics.h"

#include <cmath>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "io/json_document.h"

namespace zoo {
namespace {

/// Σ_s w[t,s] cost[t,s], mean over the rows. weights: (H, T, S), cost: (T, S); gives (H).
torch::Tensor expected(const torch::Tensor& weights, const torch::Tensor& cost) {
  return (weights * cost).sum(-1).mean(-1);
}

/// (H): the entropy of the rows, in nats.
torch::Tensor entropy_of(const torch::Tensor& weights) {
  // A head on one token gets 0, not -0.
  return 0 - torch::xlogy(weights, weights).sum(-1).mean(-1);
}

/// (H): how far the places of a grid look on it, in places. weights: (H, T, T) of an encoder.
torch::Tensor distance_on_grid(const torch::Tensor& weights, const PatchGrid& grid) {
  const int64_t n = grid.rows * grid.columns;
  const auto number = torch::arange(n, torch::kFloat64);
  const auto points = torch::stack(
      {at::floor(number / static_cast<double>(grid.columns)), number.remainder(grid.columns)}, 1);
  const auto places = weights.narrow(1, grid.n_before, n).narrow(2, grid.n_before, n);
  constexpr double least = 1e-12;  // the weight on places of a place that sees only the class token
  return ((places * at::cdist(points, points)).sum(-1) / places.sum(-1).clamp_min(least)).mean(-1);
}

/// One entry for each head, with its name and its entropy.
std::vector<HeadStatistics> with_entropies(const AttentionLayer& layer, const torch::Tensor& weights) {
  const auto entropy = entropy_of(weights);
  const bool are_shares = !weights.lt(0).any().item<bool>();
  std::vector<HeadStatistics> heads;
  for (int64_t h = 0; h < weights.size(0); ++h) {
    auto& head = heads.emplace_back();
    head.kind = layer.kind;
    head.layer = layer.layer;
    head.head = h;
    if (are_shares) head.entropy = entropy[h].item<double>();
  }
  return heads;
}

std::vector<HeadStatistics> statistics_of(const AttentionLayer& layer, const PatchGrid& grid) {
  const auto weights = layer.weights.to(torch::kFloat64);  // (H, T, S)
  auto heads = with_entropies(layer, weights);
  if (layer.kind == AttentionKind::cross) return heads;
  const auto itself = weights.diagonal(0, 1, 2).mean(-1);
  for (auto& head : heads) head.itself = itself[head.head].item<double>();
  if (layer.kind == AttentionKind::decoder) return heads;
  const auto distance = distance_on_grid(weights, grid);
  for (auto& head : heads) head.distance = distance[head.head].item<double>();
  return heads;
}

std::vector<HeadStatistics> statistics_of(const AttentionLayer& layer) {
  const auto weights = layer.weights.to(torch::kFloat64);  // (H, T, S)
  const int64_t T = weights.size(1), S = weights.size(2);
  const auto t = torch::arange(T, torch::kFloat64).unsqueeze(1), s = torch::arange(S, torch::kFloat64);
  const bool is_self = layer.kind != AttentionKind::cross;

  const auto first = weights.select(2, 0).mean(-1);
  const auto distance = expected(weights, (t - s).abs());
  const auto previous = weights.diagonal(-1, 1, 2).mean(-1);
  const auto itself = weights.diagonal(0, 1, 2).mean(-1);
  const auto error =
      expected(weights, ((s + 0.5) / static_cast<double>(S) - (t + 0.5) / static_cast<double>(T)).abs());

  auto heads = with_entropies(layer, weights);
  for (auto& head : heads) {
    const int64_t h = head.head;
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
    const auto more = report.image ? statistics_of(layer, report.image->grid) : statistics_of(layer);
    heads.insert(heads.end(), more.begin(), more.end());
  }
  return heads;
}

std::vector<double> alignment_errors(const AttentionReport& report) {
  std::vector<double> errors;
  for (const auto& layer : report.layers) {
    if (layer.kind != AttentionKind::cross) continue;
    const auto heads = statistics_of(layer);
    double sum = 0;
    for (const auto& head : heads) sum += *head.alignment_error;
    errors.push_back(sum / static_cast<double>(heads.size()));
  }
  return errors;
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
  return json_text(list);
}

}  // namespace zoo
