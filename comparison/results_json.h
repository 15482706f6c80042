#pragma once
// Turns objects of the program into parts of results.json; docs/comparison.md explains each key.

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/measure.h"
#include "checkpoints/run.h"
#include "comparison/statistics/paired_test.h"
#include "io/metrics_log.h"
#include "pages/json.h"
#include "tasks/metric.h"

namespace zoo {

/// Numbers that are not finite become null.
Json to_json(const Metrics& metrics);
Json to_json(const Interval& interval);
Json to_json(const std::vector<Sample>& samples);
/// Medians over the measurements of one run, and each with its least and its largest value; at least one.
Json speeds_json(const std::vector<Speed>& measured);

/// RUN/metrics.jsonl as lists, one per quantity. The lists of a curve have equal lengths, 0 without rows.
struct Curves {
  Json valid;  // step, tokens, flops, seconds, valid_loss, metric
  Json train;  // step, tokens, flops, seconds, train_loss, grad_norm, lr
};
Curves read_curves(const std::filesystem::path& run_dir, const Metric& metric);

/// The attention maps of all layers and heads over one text, with the statistics of the heads and the
/// roll-out. Throws the errors of attention_report().
Json attention_json(const Run& run, const std::string& text);

}  // namespace zoo
