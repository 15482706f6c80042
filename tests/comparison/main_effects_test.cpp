// What each key of a grid changes on average, computed by hand.

#include "comparison/findings/main_effects.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace zoo {
namespace {

const Metric kLossOfGrid{.key = "loss", .label = "loss"};

struct MadeUpGrid {
  ComparisonPlan plan;
  std::vector<RunResults> runs;

  /// A row with the values of the keys a and b, and the losses of its seeds.
  void add(const std::string& a, const std::string& b, const std::vector<double>& losses) {
    const auto name = "a=" + a + ", b=" + b;
    plan.variants.push_back({.name = name, .slug = name, .experiment = {}, .grid = {{"a", a}, {"b", b}}});
    RunResults run{.name = name};
    for (size_t i = 0; i < losses.size(); ++i)
      run.seeds.push_back({.seed = static_cast<int64_t>(i) + 1, .metric = losses[i]});
    runs.push_back(run);
  }
};

MadeUpGrid grid_of_four() {
  MadeUpGrid grid;
  grid.add("0", "x", {5.0, 5.2, 5.1});
  grid.add("0", "y", {4.0, 4.1, 4.3});
  grid.add("1", "x", {5.4, 5.5, 5.6});
  grid.add("1", "y", {4.6, 4.4, 4.5});
  return grid;
}

TEST(MainEffects, AreMeansOverTheOtherKeys) {
  const auto grid = grid_of_four();
  const auto effects = main_effects(grid.plan, grid.runs, kLossOfGrid);
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_EQ(effects[0].key, "a");
  EXPECT_EQ(effects[0].from, "0");
  EXPECT_EQ(effects[0].to, "1");
  const std::vector<double> with_1 = {(5.4 + 4.6) / 2, (5.5 + 4.4) / 2, (5.6 + 4.5) / 2},
                            with_0 = {(5.0 + 4.0) / 2, (5.2 + 4.1) / 2, (5.1 + 4.3) / 2};
  const auto a = paired_t_test(with_1, with_0);
  EXPECT_NEAR(effects[0].test.difference, a.difference, 1e-12);
  EXPECT_NEAR(*effects[0].test.p, *a.p, 1e-12);
  EXPECT_LT(effects[1].test.difference, -0.9) << "y has less loss";
  EXPECT_EQ(effects[1].verdict, Verdict::better);
  const auto corrected = holm_corrected(std::vector{*effects[0].test.p, *effects[1].test.p});
  EXPECT_NEAR(*effects[0].p_corrected, corrected[0], 1e-12);
  EXPECT_NEAR(*effects[1].p_corrected, corrected[1], 1e-12);
}

TEST(MainEffects, FollowTheDirectionOfTheMetric) {
  const auto grid = grid_of_four();
  const auto of_scores =
      main_effects(grid.plan, grid.runs, {.key = "score", .label = "score", .better = Better::higher});
  EXPECT_EQ(of_scores[1].verdict, Verdict::worse) << "y has less";
}

TEST(MainEffects, AreCorrectedAsTheFileSays) {
  MadeUpGrid grid;
  grid.add("0", "x", {5.0, 5.0, 5.0});
  grid.add("0", "y", {5.1, 5.2, 5.0});
  grid.add("1", "x", {5.2, 5.5, 5.2});
  grid.add("1", "y", {5.3, 5.5, 5.3});
  // Both effects are significant alone; Holm's correction doubles the smaller p, and Benjamini and Hochberg's
  // takes it to the larger one.
  auto effects = main_effects(grid.plan, grid.runs, kLossOfGrid);
  const double smaller = std::min(*effects[0].test.p, *effects[1].test.p),
               larger = std::max(*effects[0].test.p, *effects[1].test.p);
  EXPECT_LT(larger, kSignificance);
  for (const auto& effect : effects) {
    EXPECT_NEAR(*effect.p_corrected, 2 * smaller, 1e-12);
    EXPECT_EQ(effect.verdict, Verdict::undecided);
  }
  grid.plan.settings.correction = Correction::benjamini_hochberg;
  effects = main_effects(grid.plan, grid.runs, kLossOfGrid);
  for (const auto& effect : effects) {
    EXPECT_NEAR(*effect.p_corrected, larger, 1e-12);
    EXPECT_EQ(effect.verdict, Verdict::worse);
  }
}

TEST(MainEffects, LeaveOutAblationsAndKeysWithMoreValues) {
  auto grid = grid_of_four();
  const auto effects = main_effects(grid.plan, grid.runs, kLossOfGrid);
  grid.add("1", "y", {9, 9, 9});
  grid.plan.variants.back().ablation = AblationConfig{.of = grid.plan.variants[3].name};
  for (size_t i = 0; i < grid.plan.variants.size(); ++i)
    grid.plan.variants[i].grid.push_back({.key = "c", .value = std::to_string(i % 3)});
  const auto with_others = main_effects(grid.plan, grid.runs, kLossOfGrid);
  ASSERT_EQ(with_others.size(), 2U) << "c has three values";
  for (const size_t i : {0, 1}) {
    EXPECT_EQ(with_others[i].test.difference, effects[i].test.difference);
    EXPECT_EQ(with_others[i].p_corrected, effects[i].p_corrected);
  }
}

TEST(MainEffects, NeedTwoKeysAndSeedsOfAllRows) {
  MadeUpGrid grid;
  grid.add("0", "x", {5, 5.2});
  grid.add("1", "x", {4, 4.1});
  EXPECT_TRUE(main_effects(grid.plan, grid.runs, kLossOfGrid).empty()) << "b has one value";
  grid.add("0", "y", {4, 4.1});
  grid.add("1", "y", {4, 4.1});
  EXPECT_EQ(main_effects(grid.plan, grid.runs, kLossOfGrid).size(), 2U);
  grid.runs[2].seeds[1].end = SeedEnd::failed;
  EXPECT_EQ(main_effects(grid.plan, grid.runs, kLossOfGrid)[0].test.n, 1) << "the seed of all rows";
  grid.runs[3].seeds[0].metric.reset();
  EXPECT_TRUE(main_effects(grid.plan, grid.runs, kLossOfGrid).empty());
}

}  // namespace
}  // namespace zoo
