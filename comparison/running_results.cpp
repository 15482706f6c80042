#include "comparison/running_results.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "checkpoints/run.h"
#include "comparison/findings/findings.h"
#include "comparison/kept_results.h"
#include "comparison/runner.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The best value of the metric in a curve.
std::optional<double> best_in(const std::vector<CurvePoint>& curve, const Metric& metric) {
  std::optional<double> best;
  for (const auto& point : curve) {
    if (!std::isnan(point.metric) && (!best || metric.is_better(point.metric, *best))) best = point.metric;
  }
  return best;
}

SeedResults seed_so_far(const PlannedVariant& variant, int64_t seed, const fs::path& run_dir,
                        const Metric& metric) {
  SeedResults results{.seed = seed, .error = failure_of(run_dir), .curves = read_curves(run_dir, metric)};
  const bool done =
      !results.error && (!variant.runs.empty() || is_finished(run_dir, variant.with_seed(seed).training));
  results.end = results.error ? SeedEnd::failed : done ? SeedEnd::all_steps : SeedEnd::interrupted;
  if (done) results.metric = best_in(results.curves.valid, metric);
  return results;
}

}  // namespace

ComparisonResults running_results(const ComparisonPlan& plan, const fs::path& dir, c10::Device device,
                                  const Origin& origin, RunState state) {
  ComparisonResults results{.plan = plan,
                            .metric = metric_of_runs(plan, dir),
                            .device = device,
                            .origin = origin,
                            .notices = plan.notices};
  ComparisonProgress progress{.state = state};
  for (const auto& variant : plan.variants) {
    RunResults run{.name = variant.name,
                   .variant = variant.variant,
                   .baseline = variant.baseline,
                   .ablation = variant.ablation};
    int64_t n_done = 0;
    for (const int64_t seed : variant.seeds) {
      if (variant.ablation) {  // is measured when all are trained
        run.seeds.push_back({.seed = seed, .end = SeedEnd::interrupted});
        continue;
      }
      run.seeds.push_back(seed_so_far(variant, seed, run_dir_of(dir, variant, seed), results.metric));
      n_done += run.seeds.back().end != SeedEnd::interrupted;
    }
    run.metric = mean_of_seeds(run);
    progress.finished += n_done == std::ssize(variant.seeds);
    progress.finished_trainings += n_done;
    if (!variant.ablation) progress.trainings += std::ssize(variant.seeds);
    results.runs.push_back(std::move(run));
  }
  results.progress = progress;
  return results;
}

}  // namespace zoo
