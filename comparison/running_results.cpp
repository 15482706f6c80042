#include "comparison/running_results.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "checkpoints/run.h"
#include "comparison/results_json.h"
#include "comparison/runner.h"
#include "comparison/scores.h"
#include "comparison/statistics/paired_test.h"
#include "pages/report/report_document.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The best value of the metric in a curve.
std::optional<double> best_in(const Json& curve, const Metric& metric) {
  std::optional<double> best;
  for (const auto& value : curve["metric"]) {
    if (!value.is_number()) continue;
    const double number = value;
    if (!best || (metric.better == Better::lower ? number < *best : number > *best)) best = number;
  }
  return best;
}

Json seed_so_far(const PlannedVariant& variant, int64_t seed, const fs::path& run_dir, const Metric& metric) {
  const auto failure = failure_of(run_dir);
  const bool done =
      !failure && (!variant.runs.empty() || is_finished(run_dir, variant.with_seed(seed).training));
  auto curves = read_curves(run_dir, metric);
  const auto best = done ? best_in(curves.valid, metric) : std::nullopt;
  return {{"seed", seed},
          {"end", failure ? "failed"
                  : done  ? "all_steps"
                          : "interrupted"},
          {"error", or_null(failure)},
          {"valid", best ? Json{{metric.key, *best}} : Json::object()},
          {"curve", std::move(curves.valid)},
          {"train_curve", std::move(curves.train)}};
}

}  // namespace

Json running_results(const ComparisonPlan& plan, const fs::path& dir, c10::Device device,
                     const Origin& origin, RunState state) {
  const auto metric = metric_of_runs(plan, dir);
  Json results = results_header(plan, metric, device, origin);
  int64_t n_finished = 0, n_done = 0, n_trainings = 0;
  Json runs = Json::array();
  for (const auto& variant : plan.variants) {
    Json run = facts_of(variant), seeds = Json::array();
    std::vector<double> values;
    int64_t n_done_here = 0;
    for (const int64_t seed : variant.seeds) {
      seeds.push_back(seed_so_far(variant, seed, run_dir_of(dir, variant, seed), metric));
      n_done_here += seeds.back()["end"] != "interrupted";
      if (const auto value = number_at(seeds.back()["valid"], metric.key.c_str())) values.push_back(*value);
    }
    run["metric"] = values.empty() ? Json() : to_json(mean_interval(values));
    run["baseline"] = or_null(variant.baseline);
    run["seeds"] = std::move(seeds);
    n_finished += n_done_here == std::ssize(variant.seeds);
    n_done += n_done_here;
    n_trainings += std::ssize(variant.seeds);
    runs.push_back(std::move(run));
  }
  results["progress"] = {{"finished", n_finished},
                         {"runs", runs.size()},
                         {"finished_trainings", n_done},
                         {"trainings", n_trainings},
                         {"stopped", state == RunState::stopped}};
  results["fair"] = plan.fair();
  results["notices"] = Json::array();
  for (const auto& [kind, text] : plan.notices)
    results["notices"].push_back({{"kind", name_of(kind)}, {"text", text}});
  results["differences"] = plan.differences;
  results["runs"] = std::move(runs);
  return results;
}

}  // namespace zoo
