// The sentences and tests on the results of a comparison.

#include "comparison/findings/findings.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison/unequal_machine.h"
#include "statistics/paired_test.h"
#include "statistics/power.h"

namespace zoo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Metric kAccuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
const Metric kBits{.key = "bits_per_byte", .label = "bits per byte"};

using Runs = std::vector<RunResults>;

/// A run with one value per seed; NaN stands for a seed that failed.
RunResults run_of(const std::string& name, const std::vector<double>& values) {
  RunResults run{.name = name};
  for (size_t i = 0; i < values.size(); ++i) {
    const bool failed = std::isnan(values[i]);
    run.seeds.push_back({.seed = static_cast<int64_t>(i) + 1,
                         .end = failed ? SeedEnd::failed : SeedEnd::all_steps,
                         .metric = failed ? std::nullopt : std::optional(values[i])});
  }
  run.metric = mean_of_seeds(run);
  return run;
}

/// Runs that are compared with the first of them.
Runs against_first(Runs runs) {
  for (size_t i = 1; i < runs.size(); ++i) runs[i].baseline = runs[0].name;
  return runs;
}

/// Says of each seed whether its loss, which is the metric, shows that it has learnt.
void judge(RunResults& run, double guess) {
  for (auto& seed : run.seeds) seed.learnt = seed.metric < guess;
}

constexpr double kFailed = std::numeric_limits<double>::quiet_NaN();

TEST(Findings, TellBetterFromWorseByTheDirectionOfTheMetric) {
  for (const auto& metric : {kAccuracy, kBits}) {
    Runs runs = against_first({run_of("base", {0.50, 0.51, 0.52}), run_of("more", {0.60, 0.61, 0.621}),
                               run_of("less", {0.40, 0.41, 0.421}), run_of("alike", {0.51, 0.50, 0.52})});
    compare_with_baselines(runs, metric, {});
    const bool high = metric.better == Better::higher;
    EXPECT_FALSE(runs[0].versus_baseline);
    EXPECT_EQ(runs[1].versus_baseline->verdict, high ? Verdict::better : Verdict::worse);
    EXPECT_EQ(runs[2].versus_baseline->verdict, high ? Verdict::worse : Verdict::better);
    EXPECT_EQ(runs[3].versus_baseline->verdict, Verdict::undecided);
    EXPECT_NEAR(runs[1].versus_baseline->test.difference, 0.1003, 1e-3);
    EXPECT_GE(runs[1].versus_baseline->p_corrected, runs[1].versus_baseline->test.p);
    const auto text = findings(runs, metric, true);
    EXPECT_THAT(
        text, HasSubstr(high ? "more has the best mean of 4 runs: " : "less has the best mean of 4 runs: "));
    EXPECT_THAT(
        text,
        HasSubstr(high ? " 1 of 3 runs is better than base (more), 1 worse (less) and 1 undecided (alike)."
                       : " 1 of 3 runs is better than base (less), 1 worse (more) and 1 undecided (alike)."));
    EXPECT_THAT(text, HasSubstr("(mean of 3 seeds, 95 % interval)."));
    runs.erase(runs.begin() + 2, runs.end());
    EXPECT_THAT(findings(runs, metric, true),
                HasSubstr(high ? " more is better than base." : " more is worse than base."));
  }
  EXPECT_EQ(findings({run_of("a", {0.5})}, kAccuracy, true),
            "a has 50.0 % accuracy (one seed: no interval).");
}

TEST(Findings, AnAblationIsNoRunThatWasTrained) {
  Runs runs = against_first({run_of("full", {0.90, 0.92, 0.91}), run_of("linear", {0.70, 0.72, 0.715}),
                             run_of("cut", {0.50, 0.92, 0.52}), run_of("more", {0.95, 0.96, 0.97})});
  runs[2].baseline = "linear";
  for (const size_t i : {2, 3}) runs[i].ablation = AblationConfig{.of = *runs[i].baseline};
  compare_with_baselines(runs, kAccuracy, {});
  EXPECT_EQ(runs[2].versus_baseline->agreeing, 2);
  EXPECT_EQ(runs[3].versus_baseline->agreeing, 3);
  const auto text = findings(runs, kAccuracy, true);
  EXPECT_THAT(text, HasSubstr("full has the best mean of 2 runs"));
  EXPECT_THAT(text, HasSubstr("linear is worse than full"));
  EXPECT_THAT(text, Not(HasSubstr("cut")));
  EXPECT_THAT(text, Not(HasSubstr("more")));
  EXPECT_EQ(ablation_finding({runs[2]}, kAccuracy, true),
            "cut: accuracy 6 points lower than linear (-51 to 64), in 2 of 3 seeds.");
  EXPECT_THAT(ablation_finding(runs, kAccuracy, true),
              HasSubstr("more: accuracy 5.0 points higher than full (2.5 to 7.5), in 3 of 3 seeds."));
  EXPECT_EQ(ablation_finding(runs, kAccuracy, false), "");
}

TEST(Findings, NamesWithCommasAreToldApart) {
  EXPECT_EQ(list_of_names({"a"}), "a");
  EXPECT_EQ(list_of_names({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(list_of_names({"a, small", "b, small", "c"}), "“a, small”, “b, small” and “c”");
}

TEST(Findings, SayOnWhatTheModelsWereTested) {
  Runs runs = against_first({run_of("a", {0.9}), run_of("b", {0.7}), run_of("c", {kFailed})});
  for (auto& run : runs) {
    if (run.name == "c") continue;
    run.examples = ExampleValues{.values = std::vector<double>(40, run.name == "a" ? 1 : 0),
                                 .weights = std::vector<double>(40, 1),
                                 .inputs = "same"};
  }
  compare_with_baselines(runs, kAccuracy, {});
  EXPECT_THAT(verdict_finding(runs, true),
              HasSubstr("b is worse than a, on the same 40 examples; c failed with every seed."));
}

TEST(Findings, SayWhetherATestIsOverDocuments) {
  const auto over = [](bool are_parts) {
    Runs runs = against_first({run_of("a", {0.9}), run_of("b", {0.7})});
    for (auto& run : runs) {
      run.examples = ExampleValues{.values = {}, .weights = std::vector<double>(40, 1), .inputs = "same"};
      for (int64_t i = 0; i < 40; ++i) {
        run.examples->values.push_back(run.name == "a" || i % 5 == 0 ? 1 : 0);
        if (are_parts) run.examples->documents.push_back(i / 2);
      }
    }
    compare_with_baselines(runs, kAccuracy, {});
    return *runs[1].versus_baseline;
  };
  EXPECT_EQ(over(false).over, TestedOver::examples);
  EXPECT_EQ(over(false).test.n, 40);
  EXPECT_EQ(over(true).over, TestedOver::documents);
  EXPECT_EQ(over(true).test.n, 20);
}

TEST(Findings, PairOnlyTheSeedsThatBothHave) {
  Runs runs = against_first({run_of("base", {1.0, 9.0, 3.0}), run_of("other", {1.5, kFailed, 3.501})});
  compare_with_baselines(runs, kBits, {});
  EXPECT_NEAR(runs[1].versus_baseline->test.difference, 0.5005, 1e-12);
  EXPECT_LT(*runs[1].versus_baseline->test.p, 0.001);
}

TEST(Findings, EachRunIsComparedWithItsOwnBaseline) {
  Runs runs = {run_of("a, n=1", {1.0, 1.1, 1.2}), run_of("a, n=2", {2.0, 2.1, 2.2}),
               run_of("b, n=1", {1.5, 1.6, 1.701}), run_of("b, n=2", {1.5, 1.6, 1.701})};
  for (auto& run : runs) run.variant = run.name.substr(0, 1);
  runs[2].baseline = "a, n=1";
  runs[3].baseline = "a, n=2";
  compare_with_baselines(runs, kBits, {});
  EXPECT_FALSE(runs[1].versus_baseline);
  EXPECT_EQ(runs[2].versus_baseline->verdict, Verdict::worse);
  EXPECT_EQ(runs[3].versus_baseline->verdict, Verdict::better);
  EXPECT_EQ(
      findings(runs, kBits, true),
      "b is better than a at 1 of 2 points of the grid and worse at 1. a, n=1 has the best mean of 4 runs: "
      "1.10 ± 0.25 bits per byte (mean of 3 seeds, 95 % interval).");
  runs.push_back(run_of("c, n=1", {1.5, 1.6, 1.701}));
  runs[4].variant = "c";
  runs[4].baseline = "a, n=1";
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(
      verdict_finding(runs, true),
      "b is better than a at 1 of 2 points of the grid and worse at 1; c is worse than a at 1 of 1 point of "
      "the grid.");
}

TEST(Findings, ManyVariantsOfAGridAreCounted) {
  Runs runs = {run_of("base, n=1", {1.0, 1.1, 1.2}), run_of("base, n=2", {1.0, 1.1, 1.2})};
  for (auto& run : runs) run.variant = "base";
  for (int i = 1; i <= 6; ++i) {
    runs.push_back(run_of("other " + std::to_string(i), {1.5, 1.6, 1.701}));
    runs.back().variant = runs.back().name;
    runs.back().baseline = "base, n=1";
  }
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(verdict_finding(runs, true), "6 of 6 runs are worse than base at the same point of the grid.");
}

/// Runs whose seeds saw so many tokens.
Runs readers(const std::vector<std::pair<std::string, std::vector<int64_t>>>& list) {
  Runs runs;
  for (const auto& [name, tokens] : list) {
    runs.push_back({.name = name});
    for (const int64_t n : tokens) {
      TrainingState state;
      state.tokens = n;
      runs.back().seeds.push_back({.state = state});
    }
  }
  return runs;
}

TEST(Findings, SayTheTokensUnderABudget) {
  const Budget seconds{BudgetKind::seconds, 60}, tokens{BudgetKind::tokens, 2e6},
      flops{BudgetKind::flops, 2e12};
  const Runs unequal = readers({{"gpt", {4'000'000, 4'220'000}}, {"llama", {3'290'000}}, {"elsewhere", {}}});
  EXPECT_EQ(consumption_finding(seconds, unequal, "token"),
            "In 60 s gpt saw 4.11 M tokens and llama 3.29 M.");
  EXPECT_EQ(consumption_finding(flops, unequal, "image"),
            "With 2 TFLOPs gpt saw 4.11 M images and llama 3.29 M.");
  EXPECT_EQ(consumption_finding({BudgetKind::steps, 100}, unequal, "token"), "");
  EXPECT_EQ(consumption_finding(seconds, readers({{"elsewhere", {}}}), "token"), "");

  const Runs equal = readers({{"gpt", {2'000'100}}, {"llama", {2'003'900}}});
  EXPECT_EQ(consumption_finding(tokens, equal, "token"), "Every run saw 2 M tokens.");
  EXPECT_EQ(consumption_finding(tokens, readers({{"gpt", {512}}}), "token"), "gpt saw 512 tokens.");

  std::vector<std::pair<std::string, std::vector<int64_t>>> many;
  for (int i = 1; i <= 7; ++i) many.push_back({"run " + std::to_string(i), {i * 1'000'000}});
  EXPECT_EQ(consumption_finding(seconds, readers(many), "token"),
            "In 60 s the runs saw between 1 M tokens (run 1) and 7 M (run 7).");
}

// Equal seconds are not equal where another program takes a part of the machine.
TEST(Findings, SecondsOfABusyMachineAreNotEqual) {
  const auto trained = [](const std::string& name, const std::vector<int64_t>& tokens, double speed) {
    auto run = run_of(name, {0.5, 0.5});
    for (size_t i = 0; i < tokens.size(); ++i) {
      run.seeds[i].state.emplace();
      run.seeds[i].state->tokens = tokens[i];
      run.seeds[i].state->seconds = 10;
    }
    run.speed = RunSpeed{.train_tokens_per_second = Measured{.median = speed}};
    return run;
  };
  const Budget seconds{.kind = BudgetKind::seconds, .amount = 10},
      steps{.kind = BudgetKind::steps, .amount = 10};
  const Runs quiet{trained("gpt", {109'000, 108'000}, 11'000), trained("mlp", {205'000, 199'000}, 21'000)};
  EXPECT_FALSE(unequal_machine(seconds, quiet)) << "a faster model reads more";
  const Runs seeds{quiet[1], trained("gpt", {109'000, 78'000}, 11'000)};
  EXPECT_THAT(
      unequal_machine(seconds, seeds).value(),
      AllOf(HasSubstr("gpt (seed 2) had 72 % of the speed of gpt (seed 1)"), HasSubstr("budget of tokens")));
  Runs runs{quiet[0], trained("mlp", {120'000, 121'000}, 21'000)};
  EXPECT_THAT(unequal_machine(seconds, runs).value(),
              HasSubstr("mlp (seed 1) had 58 % of the speed of gpt (seed 1)"));
  EXPECT_FALSE(unequal_machine(steps, runs));
  runs[1].speed.reset();
  EXPECT_FALSE(unequal_machine(seconds, runs)) << "nothing shows how fast it is on a quiet machine";
}

TEST(Findings, NumbersHaveSignificantDigits) {
  EXPECT_EQ(digits_after_point(0.0519, 2), 3);
  EXPECT_EQ(digits_after_point(0.80, 2), 2);
  EXPECT_EQ(digits_after_point(12.3, 2), 0);
  EXPECT_EQ(digits_after_point(1234, 2), 0);
  EXPECT_EQ(digits_after_point(1e-9, 2), 6) << "at most";
  EXPECT_EQ(digits_after_point(0, 2), 2);
}

TEST(Findings, OneSeedIsNoTest) {
  Runs runs = against_first({run_of("base", {1.0}), run_of("other", {1.5})});
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(runs[1].versus_baseline->verdict, Verdict::untested);
  EXPECT_FALSE(runs[1].versus_baseline->test.p.has_value());
}

TEST(Findings, RunsThatFailedAreNamedAndNeverBest) {
  Runs runs = against_first({run_of("base", {1.0, 1.1}), run_of("wild", {kFailed, kFailed})});
  compare_with_baselines(runs, kBits, {});
  EXPECT_FALSE(runs[1].versus_baseline);
  EXPECT_THAT(findings(runs, kBits, true), ::testing::AllOf(HasSubstr("base has the best mean of 2 runs: "),
                                                            HasSubstr(" wild failed with every seed.")));
  EXPECT_EQ(findings({run_of("wild", {kFailed})}, kBits, true), "No run could be trained to its end.");
}

TEST(Findings, UndecidedRunsSayHowManySeedsWouldTell) {
  Runs runs = against_first({run_of("base", {1.00, 1.10, 1.05}), run_of("other", {0.90, 1.08, 0.80})});
  compare_with_baselines(runs, kBits, {});
  const auto& versus = *runs[1].versus_baseline;
  EXPECT_EQ(versus.verdict, Verdict::undecided);
  EXPECT_EQ(versus.test.n, 3);
  const double deviation = 0.1167618;  // of -0.10, -0.02, -0.25
  EXPECT_EQ(versus.seeds_needed, *pairs_needed(versus.test.difference / deviation, 1));
}

TEST(Findings, TheSameIsOnlySaidWithinTheMargin) {
  const Runs rows = {run_of("base", {1.000, 1.100, 1.050}), run_of("near", {1.001, 1.101, 1.0502})};
  for (const auto& [margin, said] : {std::pair(0.01, Verdict::same), std::pair(1e-4, Verdict::undecided)}) {
    Runs runs = against_first(rows);
    compare_with_baselines(runs, kBits, {.margin = margin});
    EXPECT_EQ(runs[1].versus_baseline->verdict, said) << margin;
    EXPECT_NEAR(runs[1].versus_baseline->margin, margin * 1.05, 1e-12) << "of the baseline";
  }
  Runs accuracies = against_first({run_of("base", {0.5, 0.6}), run_of("other", {0.5, 0.6})});
  compare_with_baselines(accuracies, kAccuracy, {.margin = 0.01});
  EXPECT_EQ(accuracies[1].versus_baseline->margin, 0.01) << "a point";
  EXPECT_EQ(accuracies[1].versus_baseline->verdict, Verdict::same) << "no pair differs";
}

TEST(Findings, AnUnfairComparisonHasNoWinner) {
  Runs runs = against_first({run_of("base", {0.50, 0.51, 0.52}), run_of("other", {0.60, 0.61, 0.621})});
  compare_with_baselines(runs, kBits, {.fair = false});
  EXPECT_EQ(runs[1].versus_baseline->verdict, Verdict::unfair);
  EXPECT_EQ(findings(runs, kBits, false),
            "The comparison is not fair, so it has no winner: the notices say what differs.");
}

TEST(Findings, SeedsThatDidNotLearnAreToldApart) {
  Runs runs =
      against_first({run_of("base", {3.05, 3.06, 3.07, 3.06}), run_of("deep", {3.607, 3.04, 3.05, 3.607})});
  judge(runs[0], 9);
  judge(runs[1], 3.5);
  EXPECT_EQ(n_not_learnt(runs[1]), 2);
  EXPECT_FALSE(counted_value(runs[1], runs[1].seeds[0]));
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(runs[1].versus_baseline->test.n, 2) << "seeds 2 and 3";
  EXPECT_NEAR(runs[1].versus_baseline->test.difference, -0.02, 1e-12);
  // The two seeds that learnt are better than the baseline's, but the row is not.
  EXPECT_EQ(runs[1].versus_baseline->verdict, Verdict::unsteady);
  EXPECT_FALSE(runs[1].versus_baseline->test.p.has_value());
  EXPECT_FALSE(power_of(runs).has_value());
  EXPECT_THAT(findings(runs, kBits, true),
              HasSubstr("deep cannot be compared with base; deep learnt with some seeds only, and only those "
                        "count in the mean."));
  // Where no seed learnt anything, they are what there is to compare.
  judge(runs[1], 0);
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(runs[1].versus_baseline->test.n, 4);
  EXPECT_EQ(runs[1].versus_baseline->verdict, Verdict::undecided) << "all seeds are tested";
  EXPECT_THAT(findings(runs, kBits, true),
              HasSubstr("; deep never learnt more than how frequent each label is."));
}

TEST(Findings, ABaselineThatDidNotAlwaysLearnIsNoBaseline) {
  Runs runs = against_first({run_of("base", {3.6, 3.04, 3.05}), run_of("other", {3.1, 3.11, 3.12}),
                             run_of("third", {3.1, 3.11, 3.12})});
  judge(runs[0], 3.5);
  compare_with_baselines(runs, kBits, {});
  EXPECT_EQ(runs[1].versus_baseline->verdict, Verdict::unsteady);
  EXPECT_THAT(findings(runs, kBits, true),
              HasSubstr("2 of 2 runs cannot be compared with base (other and third)"));
}

// What all tests of a comparison promise is what the one with the fewest pairs can find.
TEST(Findings, ThePowerIsThatOfTheFewestPairs) {
  Runs runs = against_first(
      {run_of("base", {1.0, 1.1, 1.2, 1.3, 1.4}), run_of("three", {1.1, 1.0, kFailed, kFailed, 1.6}),
       run_of("five", {1.1, 1.0, 1.5, 1.4, 1.6}), run_of("one", {kFailed, kFailed, kFailed, kFailed, 1.6})});
  compare_with_baselines(runs, kBits, {});
  const auto power = power_of(runs).value();
  EXPECT_EQ(power.seeds, 3) << "a single pair is no test";
  EXPECT_EQ(power.tests, 2);
  const double effect = 2 / std::sqrt(2.0);
  EXPECT_DOUBLE_EQ(power.probability, power_of_test(effect, 3, 2));
  EXPECT_EQ(power.seeds_needed, *pairs_needed(effect, 2));
  std::swap(runs[1], runs[2]);
  EXPECT_EQ(power_of(runs)->seeds, 3) << "in any order";
}

// Each of two equal tests is corrected for both, and a test without a p for none.
TEST(Findings, EveryTestIsCorrectedForAll) {
  Runs runs = against_first({run_of("base", {1.00, 1.10, 1.05}), run_of("a", {1.10, 1.21, 1.149}),
                             run_of("b", {1.10, 1.21, 1.149}), run_of("c", {1.5, kFailed, kFailed})});
  compare_with_baselines(runs, kBits, {});
  const auto& versus = *runs[1].versus_baseline;
  EXPECT_DOUBLE_EQ(*versus.p_corrected, 2 * *versus.test.p);
  const PairedTest test = paired_t_test(std::vector{1.10, 1.21, 1.149}, std::vector{1.00, 1.10, 1.05});
  EXPECT_DOUBLE_EQ(*versus.test.p, *test.p);
  EXPECT_DOUBLE_EQ(*versus.test.low, *test.low);
  EXPECT_DOUBLE_EQ(*versus.p_same, std::min(1.0, 2 * *equivalence_p(test, 0.01 * 1.05)));
  EXPECT_FALSE(runs[3].versus_baseline->p_corrected.has_value());
}

TEST(Findings, ManyRunsAreCounted) {
  Runs runs = {run_of("base", {1.0, 1.1, 1.2})};
  for (int i = 0; i < 20; ++i) runs.push_back(run_of("run " + std::to_string(i), {1.1, 1.0, 1.2}));
  runs = against_first(runs);
  compare_with_baselines(runs, kBits, {});
  const auto text = findings(runs, kBits, true);
  EXPECT_THAT(text, HasSubstr("20 of 20 runs cannot be told from base."));
  EXPECT_EQ(std::ranges::count(text, '\n'), 0);
  EXPECT_LT(text.size(), 250U);
}

}  // namespace
}  // namespace zoo
