#include "comparison/tuning.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "comparison/kept_results.h"
#include "comparison/planning/comparison_directory.h"
#include "io/files.h"
#include "statistics/paired_test.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Tuning uses the seeds from here on. A comparison has at most 1000 seeds, from 1 on.
constexpr int64_t kFirstSeed = 1001;

BudgetConfig share_of(Budget budget, double share) {
  budget.amount *= share;
  if (budget.kind == BudgetKind::steps) budget.amount = std::max(1.0, std::round(budget.amount));
  return config_of(budget);
}

/// A short training has a short warm-up.
Experiment shortened(Experiment experiment, double share) {
  auto& warmup = experiment.training.schedule.warmup_steps;
  warmup = std::llround(share * static_cast<double>(warmup));
  return experiment;
}

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

TunedVariant results_of(const Variant& variant, const std::vector<CandidateOutcome>& outcomes,
                        size_t chosen) {
  TunedVariant tuned{.name = variant.name,
                     .chosen = variant.candidates[chosen].name,
                     .keys_at_edge = keys_at_edge(variant.candidates, variant.candidates[chosen])};
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const auto& [values, flops, seconds] = outcomes[i];
    tuned.candidates.push_back({variant.candidates[i].name,
                                values.empty() ? std::nullopt : std::optional(mean_interval(values).mean)});
    tuned.flops += flops;
    tuned.seconds += seconds;
  }
  return tuned;
}

}  // namespace

Comparison short_trainings(const Comparison& comparison, const Budget& budget) {
  Comparison all{.settings = comparison.settings, .variants = {}};
  all.settings.budget = share_of(budget, comparison.settings.tune.share);
  all.settings.seeds = comparison.settings.tune.seeds;
  all.settings.evaluate_lengths.clear();
  for (const auto& variant : comparison.variants) {
    for (const auto& candidate : variant.candidates) {
      all.variants.push_back({.name = fmt::format("{}, {}", variant.name, candidate.name),
                              .experiment = shortened(candidate.experiment, comparison.settings.tune.share),
                              .size = variant.size});
    }
  }
  return all;
}

CandidateOutcome outcome_of(const PlannedVariant& candidate, const std::filesystem::path& dir,
                            const Metric& metric, c10::Device device) {
  CandidateOutcome outcome;
  for (const int64_t seed : candidate.seeds) {
    const auto run = run_dir_of(dir, candidate, seed);
    if (const auto checkpoint = newest_checkpoint(run)) {
      const auto state = read_training_state(*checkpoint);
      outcome.flops += state.flops;
      outcome.seconds += state.seconds;
    }
    if (failure_of(run)) continue;
    if (const auto value = value_of(metric, scores_of(run, device))) outcome.values.push_back(*value);
  }
  return outcome;
}

std::optional<size_t> best_of(const std::vector<CandidateOutcome>& outcomes, size_t n_seeds,
                              const Metric& metric) {
  std::optional<size_t> best;
  const auto mean = [&](size_t i) { return mean_interval(outcomes[i].values).mean; };
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].values.size() < n_seeds) continue;
    if (!best || metric.is_better(mean(i), mean(*best))) best = i;
  }
  return best;
}

std::vector<std::string> keys_at_edge(const std::vector<Candidate>& candidates, const Candidate& chosen) {
  std::vector<std::string> keys;
  for (size_t k = 0; k < chosen.values.size(); ++k) {
    std::set<double> numbers;
    for (const auto& candidate : candidates) {
      if (const auto number = number_in(candidate.values[k].value)) numbers.insert(*number);
    }
    const auto own = number_in(chosen.values[k].value);
    if (own && numbers.size() > 1 && (*own == *numbers.begin() || *own == *numbers.rbegin()))
      keys.push_back(chosen.values[k].key);
  }
  return keys;
}

int64_t n_tuning_runs(const Comparison& comparison) {
  int64_t n = 0;
  for (const auto& variant : comparison.variants) n += std::ssize(variant.candidates);
  return n * comparison.settings.tune.seeds;
}

bool is_tuned(const Comparison& comparison) { return n_tuning_runs(comparison) > 0; }

std::optional<Tuned> tune(const Comparison& comparison, const ComparisonPlan& plan,
                          const RunnerOptions& options, c10::Device device) {
  auto shorts = make_plan(short_trainings(comparison, plan.budget));
  std::vector<int64_t> seeds;
  for (int64_t i = 0; i < comparison.settings.tune.seeds; ++i) seeds.push_back(kFirstSeed + i);
  for (auto& variant : shorts.variants) variant.seeds = seeds;

  auto in_tuning = options;
  in_tuning.dir = options.dir / "tuning";
  make_comparison_directory(options.dir);
  make_subdirectory(in_tuning.dir);
  if (train_all(shorts, in_tuning) == RunnerEnd::interrupted) return std::nullopt;

  const auto metric = metric_of_runs(shorts, in_tuning.dir);
  Tuned tuned{.comparison = comparison,
              .results = {.share = comparison.settings.tune.share, .seeds = seeds, .budget = shorts.budget}};
  size_t next = 0;
  for (auto& variant : tuned.comparison.variants) {
    std::vector<CandidateOutcome> outcomes;
    for (size_t i = 0; i < variant.candidates.size(); ++i) {
      if (options.should_stop && options.should_stop()) return std::nullopt;
      outcomes.push_back(outcome_of(shorts.variants[next++], in_tuning.dir, metric, device));
    }
    if (outcomes.empty()) continue;  // a finished run
    const auto chosen = best_of(outcomes, seeds.size(), metric);
    if (!chosen) {
      throw TrainingError(fmt::format("{}: none of its {} candidates could be trained: change tune.grid",
                                      variant.name, outcomes.size()));
    }
    tuned.results.variants.push_back(results_of(variant, outcomes, *chosen));
    variant.experiment = variant.candidates[*chosen].experiment;
    if (options.on_message)
      options.on_message(fmt::format("{}: tuned to {}", variant.name, variant.candidates[*chosen].name));
  }
  return tuned;
}

}  // namespace zoo
