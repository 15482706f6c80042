#include "tasks/metric_types.h"

#include <algorithm>

#include "base/error.h"
#include "tasks/examples.h"

namespace zoo {
namespace {

double exact_match(const Selection&, const std::vector<ExampleScore>& examples) {
  double n_right = 0;
  for (const auto& example : examples) {
    if (!example.right) throw UsageError("exact_match: the task does not say which answers are right");
    n_right += *example.right ? 1 : 0;
  }
  return n_right / static_cast<double>(examples.size());
}

double worst_decile(const Selection&, const std::vector<ExampleScore>& examples) {
  std::vector<double> losses;
  for (const auto& example : examples) {
    if (example.targets > 0) losses.push_back(example.loss / static_cast<double>(example.targets));
  }
  if (losses.empty()) throw UsageError("worst_decile: no example has a target");
  std::ranges::sort(losses, std::greater());
  const auto n = std::max<size_t>(losses.size() / 10, 1);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += losses[i];
  return sum / static_cast<double>(n);
}

MetricType exact_match_type() {
  MetricType type;
  type.name = "exact_match";
  type.doc = "Share of the examples whose whole answer is right.";
  type.label = "exact match";
  type.measure = exact_match;
  return type;
}

MetricType worst_decile_type() {
  MetricType type;
  type.name = "worst_decile";
  type.doc = "Mean loss per target of the tenth of the examples with the highest one.";
  type.label = "loss of the worst tenth";
  type.better = Better::lower;
  type.measure = worst_decile;
  return type;
}

}  // namespace

Registry<MetricType>& metric_types() {
  static Registry<MetricType> types("metric", {exact_match_type(), worst_decile_type()});
  return types;
}

}  // namespace zoo
