#include "tasks/metrics/label_metrics.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace zoo {
namespace {

std::vector<double> values_of(const torch::Tensor& tensor) {
  const auto flat = tensor.to(torch::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// The numbers of the values from the highest to the lowest.
std::vector<size_t> descending(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return values[i]; });
  return order;
}

/// Calls `use` with the ends of each stretch of equal values.
template <class Use>
void for_equal_values(const std::vector<double>& values, const std::vector<size_t>& order, Use use) {
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    ++end;  // at least one, because NaN is not equal to itself
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    use(begin, end);
  }
}

torch::Tensor ranks_of(const torch::Tensor& tensor) {
  const auto values = values_of(tensor);
  const auto order = descending(values);
  auto ranks = torch::empty({std::ssize(values)}, torch::kDouble);
  for_equal_values(values, order, [&](size_t begin, size_t end) {
    const double mean = static_cast<double>(begin + end - 1) / 2;
    for (size_t i = begin; i < end; ++i) ranks.mutable_data_ptr<double>()[order[i]] = mean;
  });
  return ranks;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

double average_precision(const torch::Tensor& scores, const torch::Tensor& targets) {
  const auto values = values_of(scores), right = values_of(targets);
  const auto order = descending(values);
  const double n_right = std::accumulate(right.begin(), right.end(), 0.0);
  double found = 0, sum = 0;
  for_equal_values(values, order, [&](size_t begin, size_t end) {
    const double before = found;
    for (size_t i = begin; i < end; ++i) found += right[order[i]];
    sum += ratio(found - before, n_right) * found / static_cast<double>(end);
  });
  return sum;
}

LabelMetrics label_metrics(const torch::Tensor& logits, const torch::Tensor& targets) {
  const auto actual = targets > 0.5, predicted = logits > 0;
  const auto both = values_of(predicted.logical_and(actual).sum(0)),
             mentions = values_of(predicted.sum(0) + actual.sum(0));
  const auto sum = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  LabelMetrics metrics{.micro_f1 = ratio(2 * sum(both), sum(mentions)),
                       .exact = (predicted == actual).all(1).to(torch::kDouble).mean().item<double>()};
  const auto n_labels = static_cast<double>(both.size());
  for (size_t label = 0; label < both.size(); ++label) {
    const auto column = static_cast<int64_t>(label);
    metrics.macro_f1 += ratio(2 * both[label], mentions[label]) / n_labels;
    metrics.mean_average_precision +=
        average_precision(logits.select(1, column), targets.select(1, column)) / n_labels;
  }
  return metrics;
}

double pearson_correlation(const torch::Tensor& a, const torch::Tensor& b) {
  const auto x = a - a.mean(), y = b - b.mean();
  const double spread = (x.norm() * y.norm()).item<double>();
  return ratio((x * y).sum().item<double>(), spread);
}

double spearman_correlation(const torch::Tensor& a, const torch::Tensor& b) {
  return pearson_correlation(ranks_of(a), ranks_of(b));
}

}  // namespace zoo
