#pragma once
// How the parts of results.json are written that one object of the program becomes; docs/comparison.md says
// what each key is.

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/measure.h"
#include "comparison/metric.h"
#include "comparison/report/json.h"
#include "comparison/statistics.h"
#include "io/metrics_log.h"
#include "training/runs/run.h"

namespace zoo {

/// Numbers that are none become null.
Json to_json(const Metrics& metrics);
Json to_json(const Interval& interval);
Json to_json(const std::vector<Sample>& samples);
Json to_json(const Speed& speed);

/// RUN/metrics.jsonl as lists, one a quantity, all of a curve equally long. Empty for a run without rows.
struct Curves {
  Json valid;  // step, tokens, flops, seconds, valid_loss, metric
  Json train;  // step, tokens, flops, seconds, train_loss
};
Curves read_curves(const std::filesystem::path& run_dir, const Metric& metric);

/// The attention maps of all layers and heads over one text, with what their statistics and roll-out say.
/// Throws as attention_report() does.
Json attention_json(const Run& run, const std::string& text);

}  // namespace zoo
