// The sentences and tests on the results of a comparison.

#include "comparison/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "comparison/statistics.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

const Metric kAccuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
const Metric kBits{.key = "bits_per_byte", .label = "bits per byte"};

/// A run with one value per seed; NaN stands for a seed that failed.
Json run_of(const std::string& name, const Metric& metric, const std::vector<double>& values) {
  Json seeds = Json::array();
  std::vector<double> good;
  for (size_t i = 0; i < values.size(); ++i) {
    Json valid = Json::object();
    if (values[i] == values[i]) {
      valid[metric.key] = values[i];
      good.push_back(values[i]);
    }
    seeds.push_back({{"seed", i + 1}, {"valid", valid}});
  }
  Json interval;
  if (!good.empty()) {
    const auto mean = mean_interval(good);
    interval = {{"mean", mean.mean},
                {"high", mean.high ? Json(*mean.high) : Json()},
                {"low", nullptr},
                {"n", mean.n}};
  }
  return {{"name", name},
          {"metric", interval},
          {"baseline", nullptr},
          {"versus_baseline", nullptr},
          {"seeds", seeds}};
}

/// Runs that are compared with the first of them.
Json against_first(Json runs) {
  for (size_t i = 1; i < runs.size(); ++i) runs[i]["baseline"] = runs[0]["name"];
  return runs;
}

constexpr double kFailed = std::numeric_limits<double>::quiet_NaN();

TEST(Findings, TellBetterFromWorseByTheDirectionOfTheMetric) {
  for (const auto& metric : {kAccuracy, kBits}) {
    Json runs = against_first(
        {run_of("base", metric, {0.50, 0.51, 0.52}), run_of("more", metric, {0.60, 0.61, 0.621}),
         run_of("less", metric, {0.40, 0.41, 0.421}), run_of("alike", metric, {0.51, 0.50, 0.52})});
    compare_with_baselines(runs, metric);
    const bool high = metric.better == Better::higher;
    EXPECT_TRUE(runs[0]["versus_baseline"].is_null());
    EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], high ? "better" : "worse");
    EXPECT_EQ(runs[2]["versus_baseline"]["verdict"], high ? "worse" : "better");
    EXPECT_EQ(runs[3]["versus_baseline"]["verdict"], "same");
    EXPECT_NEAR(runs[1]["versus_baseline"]["difference"].get<double>(), 0.1003, 1e-3);
    EXPECT_GE(runs[1]["versus_baseline"]["p_corrected"], runs[1]["versus_baseline"]["p"]);
    const auto text = findings(runs, metric);
    EXPECT_THAT(text, HasSubstr(high ? "The best of 4 is more" : "The best of 4 is less"));
    EXPECT_THAT(text, HasSubstr(high ? "better than base: more" : "better than base: less"));
    EXPECT_THAT(text, HasSubstr("Not significantly different from base: alike"));
    EXPECT_THAT(text, HasSubstr("mean of 3 seeds"));
  }
  EXPECT_THAT(findings(Json::array({run_of("a", kAccuracy, {0.5})}), kAccuracy),
              HasSubstr("50.0 % accuracy (one seed: no interval)"));
}

TEST(Findings, PairOnlyTheSeedsThatBothHave) {
  Json runs =
      against_first({run_of("base", kBits, {1.0, 9.0, 3.0}), run_of("other", kBits, {1.5, kFailed, 3.501})});
  compare_with_baselines(runs, kBits);
  EXPECT_NEAR(runs[1]["versus_baseline"]["difference"].get<double>(), 0.5005, 1e-12);
  EXPECT_LT(runs[1]["versus_baseline"]["p"], 0.001);
}

TEST(Findings, EachRunIsComparedWithItsOwnBaseline) {
  Json runs = {run_of("a, n=1", kBits, {1.0, 1.1, 1.2}), run_of("a, n=2", kBits, {2.0, 2.1, 2.2}),
               run_of("b, n=1", kBits, {1.5, 1.6, 1.701}), run_of("b, n=2", kBits, {1.5, 1.6, 1.701})};
  runs[2]["baseline"] = "a, n=1";
  runs[3]["baseline"] = "a, n=2";
  compare_with_baselines(runs, kBits);
  EXPECT_TRUE(runs[1]["versus_baseline"].is_null());
  EXPECT_EQ(runs[2]["versus_baseline"]["verdict"], "worse");
  EXPECT_EQ(runs[3]["versus_baseline"]["verdict"], "better");
  EXPECT_THAT(findings(runs, kBits),
              HasSubstr("better than the first run with the same values of the grid: b, n=2"));
}

TEST(Findings, OneSeedIsNoTest) {
  Json runs = against_first({run_of("base", kBits, {1.0}), run_of("other", kBits, {1.5})});
  compare_with_baselines(runs, kBits);
  EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], "untested");
  EXPECT_TRUE(runs[1]["versus_baseline"]["p"].is_null());
}

TEST(Findings, RunsThatFailedAreNamedAndNeverBest) {
  Json runs = against_first({run_of("base", kBits, {1.0, 1.1}), run_of("wild", kBits, {kFailed, kFailed})});
  compare_with_baselines(runs, kBits);
  EXPECT_TRUE(runs[1]["versus_baseline"].is_null());
  EXPECT_THAT(findings(runs, kBits), ::testing::AllOf(HasSubstr("The best of 2 is base"),
                                                      HasSubstr("Failed with every seed: wild")));
  EXPECT_EQ(findings(Json::array({run_of("wild", kBits, {kFailed})}), kBits),
            "No run could be trained to its end.");
}

TEST(Findings, ManyRunsAreCounted) {
  Json runs = {run_of("base", kBits, {1.0, 1.1, 1.2})};
  for (int i = 0; i < 20; ++i) runs.push_back(run_of("run " + std::to_string(i), kBits, {1.1, 1.0, 1.2}));
  runs = against_first(runs);
  compare_with_baselines(runs, kBits);
  EXPECT_THAT(findings(runs, kBits), ::testing::AllOf(HasSubstr("run 7 (1.100"), HasSubstr("and 12 more."),
                                                      Not(HasSubstr("run 8 "))));
}

}  // namespace
}  // namespace zoo
