// These tests draw hundreds of made-up studies and count how often each verdict is given.

#include "statistics/power.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "comparison/findings/findings.h"
#include "statistics/paired_test.h"

namespace zoo {
namespace {

const Metric kLoss{.key = "loss", .label = "loss"};

/// Made-up results of variants that have the true values `means` and a standard deviation of 1 per run.
std::vector<RunResults> study(const std::vector<double>& means, int64_t n_seeds, std::mt19937_64& random) {
  std::vector<RunResults> runs;
  for (size_t i = 0; i < means.size(); ++i) {
    RunResults run{.name = std::to_string(i)};
    if (i > 0) run.baseline = "0";
    for (int64_t seed = 1; seed <= n_seeds; ++seed)
      run.seeds.push_back({.seed = seed, .metric = means[i] + std::normal_distribution<>()(random)});
    runs.push_back(std::move(run));
  }
  return runs;
}

/// The share of the studies in which some row has one of the verdicts.
double share_with(const std::vector<Verdict>& verdicts, const std::vector<double>& means, int64_t n_seeds,
                  int64_t n_studies, const TestRules& rules) {
  std::mt19937_64 random(1);
  int64_t n = 0;
  for (int64_t i = 0; i < n_studies; ++i) {
    auto runs = study(means, n_seeds, random);
    compare_with_baselines(runs, kLoss, rules);
    n += std::any_of(runs.begin() + 1, runs.end(), [&](const RunResults& run) {
      return std::ranges::count(verdicts, run.versus_baseline.value().verdict) > 0;
    });
  }
  return static_cast<double>(n) / static_cast<double>(n_studies);
}

// One architecture under twenty names.
TEST(NullStudy, DeclaresADifferenceInAtMostFivePercent) {
  const std::vector<double> equal(20, 10.0);
  for (const int64_t n_seeds : {3, 8}) {
    constexpr int64_t n_studies = 800;
    const double rate =
        share_with({Verdict::better, Verdict::worse}, equal, n_seeds, n_studies, {.margin = 0});
    const double noise = 3 * std::sqrt(0.05 * 0.95 / n_studies);
    EXPECT_LT(rate, 0.05 + noise) << n_seeds;
    EXPECT_GT(rate, 0.01) << n_seeds << ": the test never finds anything";
  }
}

TEST(NullStudy, CallsRowsTheSameInAtMostFivePercentIfTheyDifferByTheMargin) {
  std::vector<double> apart(10, 50.0);
  apart[0] = 40.0;  // the margin of 0.25 is 10
  constexpr int64_t n_studies = 800;
  EXPECT_LT(share_with({Verdict::same}, apart, 3, n_studies, {.margin = 0.25}),
            0.05 + 3 * std::sqrt(0.05 * 0.95 / n_studies));
  const std::vector<double> equal(10, 40.0);
  EXPECT_GT(share_with({Verdict::same}, equal, 6, 200, {.margin = 0.25}), 0.9)
      << "equal rows are called the same";
}

TEST(Power, IsWhatMadeUpStudiesFind) {
  for (const auto& [n_variants, n_seeds] : {std::pair(2, 3), std::pair(2, 6), std::pair(8, 10)}) {
    std::vector<double> means(static_cast<size_t>(n_variants), 10.0);
    means[1] += 2;  // standard deviations of a run
    constexpr int64_t n_studies = 800;
    std::mt19937_64 random(2);
    int64_t found = 0;
    double promised = 0;
    for (int64_t i = 0; i < n_studies; ++i) {
      auto runs = study(means, n_seeds, random);
      compare_with_baselines(runs, kLoss, {.margin = 0});
      found += runs[1].versus_baseline->verdict == Verdict::worse;
      if (i == 0) promised = power_of(runs).value().probability;
    }
    const double rate = static_cast<double>(found) / n_studies;
    const double noise = 3.5 * std::sqrt(promised * (1 - promised) / n_studies);
    EXPECT_NEAR(rate, promised, noise) << n_variants << " variants, " << n_seeds << " seeds";
  }
}

TEST(Power, SeedsThatAreNeededAreTheFewestThatSuffice) {
  for (const double effect : {0.3, 1.0, 1.4142, 5.0}) {
    for (const int64_t n_tests : {1, 19}) {
      const auto n = pairs_needed(effect, n_tests);
      ASSERT_TRUE(n);
      EXPECT_GE(power_of_test(effect, *n, n_tests), kPower);
      if (*n > 2) {
        EXPECT_LT(power_of_test(effect, *n - 1, n_tests), kPower);
      }
      EXPECT_EQ(pairs_needed(-effect, n_tests), n);
    }
  }
  EXPECT_EQ(pairs_needed(0.001, 1), std::nullopt);
  EXPECT_NEAR(power_of_test(0, 5, 1), 0.05, 1e-6) << "without a difference: the level of the test";
}

TEST(Power, OfAComparisonWithoutTestsIsUnknown) {
  std::mt19937_64 random(3);
  auto runs = study({10, 10}, 1, random);
  compare_with_baselines(runs, kLoss, {});
  EXPECT_FALSE(power_of(runs));
}

}  // namespace
}  // namespace zoo
