#pragma once
// Metrics that are computed from the single examples of an evaluation: the types of `training.metrics`.

#include <functional>
#include <string_view>
#include <vector>

#include "io/config/registry.h"
#include "tasks/metric.h"

namespace zoo {

struct ExampleScore;  // tasks/examples.h

/// A metric. Programs add theirs with metric_types().add(). Its name is the key of its value in
/// metrics.jsonl and results, and training.best_by may name it.
struct MetricType : TypeInfo {
  std::string label = {};  // for people; empty: the name
  Better better = Better::higher;
  /// Its value over all examples, at least one.
  std::function<double(const Selection& selection, const std::vector<ExampleScore>& examples)> measure;

  Metric metric() const { return {.key = name, .label = label.empty() ? name : label, .better = better}; }
};

inline std::string_view what_lacks(const MetricType& type) {
  return type.measure ? std::string_view() : "measure, which computes its value";
}

/// Holds
///   exact_match   the share of the examples whose whole answer is right
///   worst_decile  the mean loss per target of the tenth of the examples with the highest one
/// and added ones.
Registry<MetricType>& metric_types();

}  // namespace zoo
