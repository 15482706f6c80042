// The sentences and tests on the results of a comparison.

#include "comparison/findings.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "comparison/statistics/paired_test.h"
#include "comparison/statistics/power.h"
#include "pages/report/report_document.h"

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
    compare_with_baselines(runs, metric, {});
    const bool high = metric.better == Better::higher;
    EXPECT_TRUE(runs[0]["versus_baseline"].is_null());
    EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], high ? "better" : "worse");
    EXPECT_EQ(runs[2]["versus_baseline"]["verdict"], high ? "worse" : "better");
    EXPECT_EQ(runs[3]["versus_baseline"]["verdict"], "undecided");
    EXPECT_NEAR(runs[1]["versus_baseline"]["difference"].get<double>(), 0.1003, 1e-3);
    EXPECT_GE(runs[1]["versus_baseline"]["p_corrected"], runs[1]["versus_baseline"]["p"]);
    const auto text = findings(runs, metric, true);
    EXPECT_THAT(text,
                HasSubstr(high ? "The best mean of 4 runs has more" : "The best mean of 4 runs has less"));
    EXPECT_THAT(
        text,
        HasSubstr(
            high ? " Against base, 1 of 3 runs is better (more), 1 worse (less) and 1 undecided (alike)."
                 : " Against base, 1 of 3 runs is better (less), 1 worse (more) and 1 undecided (alike)."));
    EXPECT_THAT(text, HasSubstr("(mean of 3 seeds, 95 % interval)."));
    runs.erase(runs.begin() + 2, runs.end());
    EXPECT_THAT(findings(runs, metric, true),
                HasSubstr(high ? " more is better than base." : " more is worse than base."));
  }
  EXPECT_THAT(findings(Json::array({run_of("a", kAccuracy, {0.5})}), kAccuracy, true),
              HasSubstr("50.0 % accuracy (one seed: no interval)"));
}

TEST(Findings, PairOnlyTheSeedsThatBothHave) {
  Json runs =
      against_first({run_of("base", kBits, {1.0, 9.0, 3.0}), run_of("other", kBits, {1.5, kFailed, 3.501})});
  compare_with_baselines(runs, kBits, {});
  EXPECT_NEAR(runs[1]["versus_baseline"]["difference"].get<double>(), 0.5005, 1e-12);
  EXPECT_LT(runs[1]["versus_baseline"]["p"], 0.001);
}

TEST(Findings, EachRunIsComparedWithItsOwnBaseline) {
  Json runs = {run_of("a, n=1", kBits, {1.0, 1.1, 1.2}), run_of("a, n=2", kBits, {2.0, 2.1, 2.2}),
               run_of("b, n=1", kBits, {1.5, 1.6, 1.701}), run_of("b, n=2", kBits, {1.5, 1.6, 1.701})};
  for (auto& run : runs) run["variant"] = run["name"].get<std::string>().substr(0, 1);
  runs[2]["baseline"] = "a, n=1";
  runs[3]["baseline"] = "a, n=2";
  compare_with_baselines(runs, kBits, {});
  EXPECT_TRUE(runs[1]["versus_baseline"].is_null());
  EXPECT_EQ(runs[2]["versus_baseline"]["verdict"], "worse");
  EXPECT_EQ(runs[3]["versus_baseline"]["verdict"], "better");
  EXPECT_EQ(
      findings(runs, kBits, true),
      "b is better than a at 1 of 2 points of the grid and worse at 1. The best mean of 4 runs has a, n=1: "
      "1.10 ± 0.25 bits per byte (mean of 3 seeds, 95 % interval).");
  runs.push_back(run_of("c, n=1", kBits, {1.5, 1.6, 1.701}));
  runs[4]["variant"] = "c";
  runs[4]["baseline"] = "a, n=1";
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(verdict_finding(runs, true),
            "Against a at the same point of the grid, 2 of 3 runs are worse and 1 better.");
}

TEST(Findings, OneSeedIsNoTest) {
  Json runs = against_first({run_of("base", kBits, {1.0}), run_of("other", kBits, {1.5})});
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], "untested");
  EXPECT_TRUE(runs[1]["versus_baseline"]["p"].is_null());
}

TEST(Findings, RunsThatFailedAreNamedAndNeverBest) {
  Json runs = against_first({run_of("base", kBits, {1.0, 1.1}), run_of("wild", kBits, {kFailed, kFailed})});
  compare_with_baselines(runs, kBits, {});
  EXPECT_TRUE(runs[1]["versus_baseline"].is_null());
  EXPECT_THAT(findings(runs, kBits, true), ::testing::AllOf(HasSubstr("The best mean of 2 runs has base"),
                                                            HasSubstr(" wild failed with every seed.")));
  EXPECT_EQ(findings(Json::array({run_of("wild", kBits, {kFailed})}), kBits, true),
            "No run could be trained to its end.");
}

TEST(Findings, UndecidedRunsSayHowManySeedsWouldTell) {
  Json runs =
      against_first({run_of("base", kBits, {1.00, 1.10, 1.05}), run_of("other", kBits, {0.90, 1.08, 0.80})});
  compare_with_baselines(runs, kBits, {});
  const auto& versus = runs[1]["versus_baseline"];
  EXPECT_EQ(versus["verdict"], "undecided");
  EXPECT_EQ(versus["n"], 3);
  const double deviation = 0.1167618;  // of -0.10, -0.02, -0.25
  EXPECT_EQ(versus["seeds_needed"], *pairs_needed(versus["difference"].get<double>() / deviation, 1));
}

TEST(Findings, TheSameIsOnlySaidWithinTheMargin) {
  const Json rows = {run_of("base", kBits, {1.000, 1.100, 1.050}),
                     run_of("near", kBits, {1.001, 1.101, 1.0502})};
  for (const auto& [margin, said] : {std::pair(0.01, "same"), std::pair(1e-4, "undecided")}) {
    Json runs = against_first(rows);
    compare_with_baselines(runs, kBits, {.margin = margin});
    EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], said) << margin;
    EXPECT_NEAR(runs[1]["versus_baseline"]["margin"].get<double>(), margin * 1.05, 1e-12)
        << "of the baseline";
  }
  Json accuracies =
      against_first({run_of("base", kAccuracy, {0.5, 0.6}), run_of("other", kAccuracy, {0.5, 0.6})});
  compare_with_baselines(accuracies, kAccuracy, {.margin = 0.01});
  EXPECT_EQ(accuracies[1]["versus_baseline"]["margin"], 0.01) << "a point";
  EXPECT_EQ(accuracies[1]["versus_baseline"]["verdict"], "same") << "no pair differs";
}

TEST(Findings, AnUnfairComparisonHasNoWinner) {
  Json runs =
      against_first({run_of("base", kBits, {0.50, 0.51, 0.52}), run_of("other", kBits, {0.60, 0.61, 0.621})});
  compare_with_baselines(runs, kBits, {.fair = false});
  EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], "unfair");
  EXPECT_EQ(findings(runs, kBits, false),
            "The comparison is not fair, so it has no winner: the notices say what differs.");
}

TEST(Findings, SeedsThatDidNotLearnAreToldApart) {
  Json runs = against_first(
      {run_of("base", kBits, {3.05, 3.06, 3.07, 3.06}), run_of("deep", kBits, {3.607, 3.04, 3.05, 3.607})});
  for (auto& seed : runs[0]["seeds"]) seed["learnt"] = true;
  for (auto& seed : runs[1]["seeds"]) seed["learnt"] = seed["valid"]["bits_per_byte"] < 3.5;
  EXPECT_EQ(n_not_learnt(runs[1]), 2);
  EXPECT_FALSE(counted_value(runs[1], runs[1]["seeds"][0], kBits));
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(runs[1]["versus_baseline"]["n"], 2) << "seeds 2 and 3";
  EXPECT_NEAR(runs[1]["versus_baseline"]["difference"].get<double>(), -0.02, 1e-12);
  // The two seeds that learnt are better than the baseline's, but the row is not.
  EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], "unsteady");
  EXPECT_TRUE(runs[1]["versus_baseline"]["p"].is_null());
  EXPECT_TRUE(power_json(runs).is_null());
  EXPECT_THAT(findings(runs, kBits, true),
              HasSubstr("deep cannot be compared with base; deep learnt with some seeds only, and only those "
                        "count in the mean."));
  // Where no seed learnt anything, they are what there is to compare.
  for (auto& seed : runs[1]["seeds"]) seed["learnt"] = false;
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(runs[1]["versus_baseline"]["n"], 4);
  EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], "undecided") << "all seeds are tested";
  EXPECT_THAT(findings(runs, kBits, true),
              HasSubstr("; deep never learnt more than how frequent each label is."));
}

TEST(Findings, ABaselineThatDidNotAlwaysLearnIsNoBaseline) {
  Json runs =
      against_first({run_of("base", kBits, {3.6, 3.04, 3.05}), run_of("other", kBits, {3.1, 3.11, 3.12}),
                     run_of("third", kBits, {3.1, 3.11, 3.12})});
  for (auto& seed : runs[0]["seeds"]) seed["learnt"] = seed["valid"]["bits_per_byte"] < 3.5;
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(runs[1]["versus_baseline"]["verdict"], "unsteady");
  EXPECT_THAT(findings(runs, kBits, true),
              HasSubstr("Against base, 2 of 2 runs are unsteady (other and third)"));
}

// What all tests of a comparison promise is what the one with the fewest pairs can find.
TEST(Findings, ThePowerIsThatOfTheFewestPairs) {
  Json runs = against_first({run_of("base", kBits, {1.0, 1.1, 1.2, 1.3, 1.4}),
                             run_of("three", kBits, {1.1, 1.0, kFailed, kFailed, 1.6}),
                             run_of("five", kBits, {1.1, 1.0, 1.5, 1.4, 1.6}),
                             run_of("one", kBits, {kFailed, kFailed, kFailed, kFailed, 1.6})});
  compare_with_baselines(runs, kBits, {});
  const auto power = power_json(runs);
  EXPECT_EQ(power["seeds"], 3) << "a single pair is no test";
  EXPECT_EQ(power["tests"], 2);
  const double effect = 2 / std::sqrt(2.0);
  EXPECT_DOUBLE_EQ(power["probability"].get<double>(), power_of_test(effect, 3, 2));
  EXPECT_EQ(power["seeds_needed"], *pairs_needed(effect, 2));
  std::swap(runs[1], runs[2]);
  EXPECT_EQ(power_json(runs)["seeds"], 3) << "in any order";
}

// Each of two equal tests is corrected for both, and a test without a p for none.
TEST(Findings, EveryTestIsCorrectedForAll) {
  Json runs =
      against_first({run_of("base", kBits, {1.00, 1.10, 1.05}), run_of("a", kBits, {1.10, 1.21, 1.149}),
                     run_of("b", kBits, {1.10, 1.21, 1.149}), run_of("c", kBits, {1.5, kFailed, kFailed})});
  compare_with_baselines(runs, kBits, {});
  const auto& versus = runs[1]["versus_baseline"];
  EXPECT_DOUBLE_EQ(versus["p_corrected"].get<double>(), 2 * versus["p"].get<double>());
  const PairedTest test = paired_t_test(std::vector{1.10, 1.21, 1.149}, std::vector{1.00, 1.10, 1.05});
  EXPECT_DOUBLE_EQ(versus["p"].get<double>(), *test.p);
  EXPECT_DOUBLE_EQ(versus["low"].get<double>(), *test.low);
  EXPECT_DOUBLE_EQ(versus["p_same"].get<double>(), std::min(1.0, 2 * *equivalence_p(test, 0.01 * 1.05)));
  EXPECT_TRUE(runs[3]["versus_baseline"]["p_corrected"].is_null());
}

TEST(Findings, ManyRunsAreCounted) {
  Json runs = {run_of("base", kBits, {1.0, 1.1, 1.2})};
  for (int i = 0; i < 20; ++i) runs.push_back(run_of("run " + std::to_string(i), kBits, {1.1, 1.0, 1.2}));
  runs = against_first(runs);
  compare_with_baselines(runs, kBits, {});
  const auto text = findings(runs, kBits, true);
  EXPECT_THAT(text, HasSubstr("Against base, 20 of 20 runs are undecided."));
  EXPECT_EQ(std::ranges::count(text, '\n'), 0);
  EXPECT_LT(text.size(), 250U);
}

}  // namespace
}  // namespace zoo
