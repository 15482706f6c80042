// One architecture under twenty names, with real trainings: only the seeds differ.

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "comparison/findings/findings.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

constexpr size_t kNames = 20, kSeeds = 3;

/// The validation losses of kNames · kSeeds short trainings with different seeds.
std::vector<double> real_losses() {
  const TinyWorld world;
  std::vector<double> losses;
  for (size_t seed = 1; seed <= kNames * kSeeds; ++seed) {
    const auto experiment =
        world.experiment("language_modeling", {fmt::format("training.seed={}", seed), "training.steps=8"});
    losses.push_back(
        train(experiment, {.run_dir = world.path(fmt::format("run-{}", seed))}).best_score.value());
  }
  return losses;
}

/// A study of kNames rows with kSeeds of these losses each.
std::vector<RunResults> study(const std::vector<double>& losses) {
  std::vector<RunResults> runs;
  for (size_t i = 0; i < kNames; ++i) {
    RunResults run{.name = std::to_string(i)};
    if (i > 0) run.baseline = "0";
    for (size_t j = 0; j < kSeeds; ++j)
      run.seeds.push_back({.seed = static_cast<int64_t>(j) + 1, .metric = losses[i * kSeeds + j]});
    runs.push_back(std::move(run));
  }
  return runs;
}

TEST(RealNullStudy, DeclaresADifferenceInAtMostFivePercent) {
  auto losses = real_losses();
  const auto [least, largest] = std::ranges::minmax(losses);
  ASSERT_LT(least, largest) << "the trainings do not differ";
  std::mt19937_64 random(1);
  constexpr int64_t n_studies = 400;
  int64_t found = 0;
  for (int64_t i = 0; i < n_studies; ++i) {
    std::ranges::shuffle(losses, random);
    auto runs = study(losses);
    compare_with_baselines(runs, {.key = "loss", .label = "loss"}, {.margin = 0});
    found += std::any_of(runs.begin() + 1, runs.end(), [](const RunResults& run) {
      const auto said = run.versus_baseline.value().verdict;
      return said == Verdict::better || said == Verdict::worse;
    });
  }
  const double rate = static_cast<double>(found) / n_studies;
  RecordProperty("rate", std::to_string(rate));
  EXPECT_LT(rate, 0.05 + 3 * std::sqrt(0.05 * 0.95 / n_studies));
}

}  // namespace
}  // namespace zoo::testing
