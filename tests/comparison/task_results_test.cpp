// What several tasks say together, computed by hand and on made-up differences.

#include "comparison/tasks/task_results.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comparison/protocol.h"
#include "pages/json.h"
#include "pages/tables/task_document.h"
#include "pages/tables/task_markdown.h"
#include "statistics/paired_test.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct MadeRow {
  std::string name;
  std::vector<double> values;
};

/// The results of one task, whose first row is the baseline of the others.
Json results_of(const std::vector<MadeRow>& rows, const char* better = "lower", double margin = 0.01) {
  Json runs = Json::array(), seeds = Json::array();
  for (size_t i = 0; i < rows.front().values.size(); ++i) seeds.push_back(i + 1);
  for (const auto& [name, values] : rows) {
    Json of_row = Json::array();
    for (size_t i = 0; i < values.size(); ++i) {
      const bool failed = std::isnan(values[i]);
      of_row.push_back({{"seed", i + 1},
                        {"end", failed ? "failed" : "all_steps"},
                        {"valid", failed ? Json::object() : Json{{"score", values[i]}}}});
    }
    const bool is_first = name == rows.front().name;
    runs.push_back(
        {{"name", name},
         {"config", Json::object()},
         {"seeds", of_row},
         {"baseline", is_first ? Json() : Json(rows.front().name)},
         {"versus_baseline", is_first ? Json() : Json{{"verdict", "undecided"}, {"margin", margin}}}});
  }
  return {{"task", "language_modeling"},
          {"metric", {{"key", "score"}, {"label", "score"}, {"better", better}, {"percent", false}}},
          {"budget", {{"kind", "steps"}, {"amount", 7}}},
          {"seeds", seeds},
          {"fair", true},
          {"measured", "It was measured."},
          {"created", "2026-01-01T00:00:00Z"},
          {"machine", Json::object()},
          {"versions", Json::object()},
          {"tuning", nullptr},
          {"sizes", nullptr},
          {"runs", runs}};
}

Json together(const std::vector<TaskOutcome>& outcomes, Correction correction = Correction::holm) {
  TaskComparison comparison;
  comparison.settings.name = "made-up";
  comparison.settings.correction = correction;
  return task_results(comparison, outcomes, "zoo compare made-up.yaml");
}

TEST(TaskResults, AreThoseOfAWrittenOutComputation) {
  // One task where less is better, one where more is.
  const std::vector<double> a1 = {2.0, 2.2, 2.1}, b1 = {2.5, 2.6, 2.7}, a2 = {0.9, 0.8, 0.85},
                            b2 = {0.7, 0.5, 0.65};
  const auto document = together({{"loss", results_of({{"a", a1}, {"b", b1}})},
                                  {"score", results_of({{"a", a2}, {"b", b2}}, "higher")}});
  const auto standardised = [](std::vector<double> values, const std::vector<double>& all, double sign) {
    double mean = 0, squares = 0;
    for (const double value : all) mean += value / static_cast<double>(all.size());
    for (const double value : all) squares += (value - mean) * (value - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(all.size() - 1));
    for (double& value : values) value = sign * (value - mean) / deviation;
    return values;
  };
  const std::vector<double> all1 = {2.0, 2.2, 2.1, 2.5, 2.6, 2.7}, all2 = {0.9, 0.8, 0.85, 0.7, 0.5, 0.65};
  const auto of_a1 = standardised(a1, all1, -1), of_b1 = standardised(b1, all1, -1),
             of_a2 = standardised(a2, all2, 1), of_b2 = standardised(b2, all2, 1);
  std::vector<double> a, b;
  for (size_t i = 0; i < 3; ++i) {
    a.push_back((of_a1[i] + of_a2[i]) / 2);
    b.push_back((of_b1[i] + of_b2[i]) / 2);
  }
  const Json& rows = document["overall"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NEAR(rows[0]["standardised"]["mean"].get<double>(), (a[0] + a[1] + a[2]) / 3, 1e-12);
  EXPECT_NEAR(rows[1]["standardised"]["mean"].get<double>(), (b[0] + b[1] + b[2]) / 3, 1e-12);
  EXPECT_EQ(rows[0]["rank"], 1.0);
  EXPECT_EQ(rows[1]["rank"], 2.0);
  const auto test = paired_t_test(b, a);
  const Json& versus = rows[1]["versus_baseline"];
  EXPECT_NEAR(versus["difference"].get<double>(), test.difference, 1e-12);
  EXPECT_NEAR(versus["p_corrected"].get<double>(), *test.p, 1e-12) << "one test";
  EXPECT_EQ(versus["verdict"], "worse");
  // The p-values of the two columns are corrected for two tests.
  EXPECT_EQ(document["tests"], 2);
  const double p1 = *paired_t_test(b1, a1).p, p2 = *paired_t_test(b2, a2).p;
  const auto corrected = holm_corrected(std::vector{p1, p2});
  EXPECT_NEAR(document["tasks"][0]["runs"][1]["versus_baseline"]["p_corrected"].get<double>(), corrected[0],
              1e-12);
  EXPECT_NEAR(document["tasks"][1]["runs"][1]["versus_baseline"]["p_corrected"].get<double>(), corrected[1],
              1e-12);
  // t of 4 degrees of freedom, at 97.5 %, is 2.776445; the deviations of the rows are 0.1 and 0.1.
  EXPECT_NEAR(document["tasks"][0]["noise"]["deviation"].get<double>(), 0.1, 1e-12);
  EXPECT_NEAR(document["tasks"][0]["noise"]["difference"].get<double>(),
              2.776445105 * 0.1 * std::sqrt(2.0 / 3), 1e-8);
  EXPECT_THAT(
      document["measured"].get<std::string>(),
      AllOf(HasSubstr("Over 2 tasks a has the best mean rank, 1.0."), HasSubstr("b is worse than a.")));
}

TEST(TaskResults, EqualMeansShareARank) {
  const auto document = together({{"one", results_of({{"a", {1, 2}}, {"b", {2, 1}}, {"c", {0, 0}}})},
                                  {"two", results_of({{"a", {1, 2}}, {"b", {1, 3}}, {"c", {5, 5}}})}});
  EXPECT_EQ(document["tasks"][0]["runs"][0]["rank"], 2.5);
  EXPECT_EQ(document["tasks"][0]["runs"][1]["rank"], 2.5);
  EXPECT_EQ(document["tasks"][0]["runs"][2]["rank"], 1.0);
  EXPECT_EQ(document["overall"][0]["rank"], (2.5 + 1) / 2);
}

TEST(TaskResults, WhatFailedLeavesTheOthersWhole) {
  const double nan = std::nan("");
  const auto document = together({{.name = "broken", .error = "no data"},
                                  {"half", results_of({{"a", {1, 1.1, 1.2}}, {"b", {nan, nan, nan}}})},
                                  {"whole", results_of({{"a", {1, 1.1, 1.2}}, {"b", {2, 2.1, nan}}})}});
  EXPECT_EQ(document["tasks"][0]["error"], "no data");
  const Json &a = document["overall"][0], &b = document["overall"][1];
  EXPECT_EQ(a["tasks"], 2);
  EXPECT_EQ(b["tasks"], 1);
  EXPECT_EQ(b["versus_baseline"]["n"], 2) << "the seeds that both have, in the tasks that both have";
  EXPECT_TRUE(document["tasks"][1]["runs"][1]["metric"].is_null());
  EXPECT_THAT(document["measured"].get<std::string>(), HasSubstr("Over 2 of 3 tasks"));
  const auto page = task_markdown(document);
  EXPECT_THAT(page, HasSubstr("**broken failed.** no data"));
  EXPECT_THAT(page, HasSubstr("| failed |"));
}

TEST(TaskResults, ASeedThatFailedHasNoValueEvenWhereItWasEvaluated) {
  auto results = results_of({{"a", {1, 1.1, 1.2}}, {"b", {2, 2.4, 9}}});
  results["runs"][1]["seeds"][2]["end"] = "failed";
  auto ablated = results["runs"][1];
  ablated["name"] = "b without a head";
  ablated["ablation"] = Json::object();
  results["runs"].push_back(ablated);
  const auto document =
      together({{"one", results}, {"two", results_of({{"a", {1, 1.2, 1.1}}, {"b", {2, 2.1, 2.2}}})}});
  const Json& column = document["tasks"][0];
  EXPECT_EQ(column["runs"].size(), 2U) << "an ablation is no variant that was trained";
  EXPECT_EQ(column["runs"][1]["metric"]["n"], 2);
  EXPECT_NEAR(column["runs"][1]["metric"]["mean"].get<double>(), 2.2, 1e-12);
  // The deviation of both rows together, with 2 + 1 degrees of freedom, whose t at 97.5 % is 3.182446; the
  // difference is that of two rows with as many seeds as the row with fewest.
  const double deviation = std::sqrt((2 * 0.01 + 0.08) / 3);
  EXPECT_NEAR(column["noise"]["deviation"].get<double>(), deviation, 1e-12);
  EXPECT_NEAR(column["noise"]["difference"].get<double>(), 3.182446305 * deviation, 1e-8);
  const Json& b = document["overall"][1];
  EXPECT_EQ(b["tasks"], 2);
  EXPECT_EQ(b["standardised"]["n"], 2) << "the seeds that all tasks have";
  EXPECT_EQ(b["versus_baseline"]["n"], 2);
}

TEST(TaskResults, ABaselineThatFailedInATaskIsComparedInTheOthers) {
  const double nan = std::nan("");
  const auto document = together({{"one", results_of({{"a", {nan, nan, nan}}, {"b", {2, 2.1, 2.2}}})},
                                  {"two", results_of({{"a", {1, 1.1, 1.2}}, {"b", {2, 2.1, 2.4}}})}});
  const Json& b = document["overall"][1];
  EXPECT_EQ(b["tasks"], 2);
  EXPECT_EQ(b["versus_baseline"]["n"], 3);
  EXPECT_EQ(b["versus_baseline"]["verdict"], "worse");
}

TEST(TaskResults, UnequalConditionsAndSeedsThatLearntNothingAreNoVerdict) {
  for (const char* const said : {"unfair", "unsteady"}) {
    auto results = results_of({{"a", {1, 1.1, 1.2}}, {"b", {2, 2.1, 2.3}}});
    results["runs"][1]["versus_baseline"]["verdict"] = said;
    const auto document =
        together({{"one", results}, {"two", results_of({{"a", {1, 2, 3}}, {"b", {1, 2, 4}}})}});
    const Json &kept = document["tasks"][0]["runs"][1]["versus_baseline"],
               &other = document["tasks"][1]["runs"][1]["versus_baseline"];
    EXPECT_EQ(kept["verdict"], said);
    EXPECT_TRUE(kept["p_corrected"].is_null());
    EXPECT_EQ(other["p_corrected"], other["p"]) << "one test is left";
  }
}

TEST(TaskResults, EquivalencesAreCorrectedForAllTasks) {
  // Differences of -0.1, 0 and 0.1: their mean has an error of 0.0577, and t of 2 degrees of freedom is 3.9
  // for the margin, whose one-sided p is 0.03.
  const std::vector<MadeRow> rows = {{"a", {1, 2, 3}}, {"b", {0.9, 2, 3.1}}};
  const auto verdict_of = [&](size_t n_tasks) {
    std::vector<TaskOutcome> outcomes;
    for (size_t i = 0; i < n_tasks; ++i)
      outcomes.push_back({"task " + std::to_string(i), results_of(rows, "lower", 0.225)});
    return together(outcomes)["tasks"][0]["runs"][1]["versus_baseline"]["verdict"];
  };
  EXPECT_EQ(verdict_of(1), "same");
  EXPECT_EQ(verdict_of(2), "undecided");
}

TEST(TaskResults, AreCorrectedAsTheFileSays) {
  const std::vector<double> a = {1, 1.1, 1.2}, b = {1.2, 1.25, 1.45}, c = {1.2, 1.25, 1.42};
  const std::vector<TaskOutcome> outcomes = {{"one", results_of({{"a", a}, {"b", b}})},
                                             {"two", results_of({{"a", a}, {"b", c}})}};
  const std::vector p = {paired_t_test(b, a).p, paired_t_test(c, a).p};
  for (const auto correction : {Correction::holm, Correction::benjamini_hochberg}) {
    const auto document = together(outcomes, correction);
    const auto expected = corrected_known(correction, p);
    for (const size_t i : {0, 1}) {
      EXPECT_NEAR(document["tasks"][i]["runs"][1]["versus_baseline"]["p_corrected"].get<double>(),
                  *expected[i], 1e-12);
    }
    EXPECT_EQ(document.contains("correction"), correction == Correction::benjamini_hochberg);
  }
  EXPECT_NE(corrected_known(Correction::holm, p), corrected_known(Correction::benjamini_hochberg, p));
}

TEST(TaskResults, SayEachGapOnceAndWhichBaselineIsMeant) {
  auto results = results_of({{"a", {1, 1.1, 1.2}}, {"b", {2, 2.1, 2.3}}, {"c", {4, 4.1, 4.5}}});
  results["runs"][2]["baseline"] = "b";
  const auto document = together({{"one", results}, {"two", results}});
  const auto gaps = document["protocol"].get<std::vector<std::string>>();
  EXPECT_FALSE(gaps.empty());
  for (const auto& gap : gaps) EXPECT_EQ(std::ranges::count(gaps, gap), 1) << gap;
  EXPECT_THAT(document["measured"].get<std::string>(),
              HasSubstr("On the mean of the tasks b and c are worse than their baselines."));
}

TEST(TaskResults, EqualVariantsAreSeldomToldApart) {
  // Two equal variants on three tasks: their seeds are drawn alike.
  std::mt19937_64 random(11);
  const auto normal = [&] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53;
    return sum;
  };
  int n_false = 0;
  constexpr int n = 1000;
  for (int i = 0; i < n; ++i) {
    std::vector<TaskOutcome> outcomes;
    for (const char* name : {"one", "two", "three"}) {
      std::vector<MadeRow> rows = {{"a", {}}, {"b", {}}};
      for (auto& row : rows) {
        for (int seed = 0; seed < 3; ++seed) row.values.push_back(normal());
      }
      outcomes.push_back({name, results_of(rows, "lower", 0)});
    }
    const auto verdict = together(outcomes)["overall"][1]["versus_baseline"]["verdict"];
    n_false += verdict == "better" || verdict == "worse" ? 1 : 0;
  }
  EXPECT_LE(n_false, 65) << "5 % of 1,000, and two standard deviations of chance";
  EXPECT_GE(n_false, 25) << "a test that never says anything is not better";
}

TEST(TaskResults, ADamagedDocumentIsRefused) {
  auto document =
      together({{"one", results_of({{"a", {1, 2}}, {"b", {2, 1}}})}, {.name = "x", .error = "y"}});
  EXPECT_TRUE(has_several_tasks(document));
  check_task_results(document);
  for (const char* key : {"name", "tasks", "overall", "schema"}) {
    auto damaged = document;
    damaged[key] = 3;
    EXPECT_THROW(task_markdown(damaged), DataError) << key;
  }
  auto damaged = document;
  damaged["tasks"][0]["metric"]["better"] = "louder";
  EXPECT_THROW(check_task_results(damaged), DataError);
  damaged = document;
  damaged["tasks"][0]["runs"][0].erase("name");
  EXPECT_THROW(check_task_results(damaged), DataError);
}

// ---- The protocol

Json trained(const std::vector<std::string>& mixers, const std::string& schedule = "cosine") {
  std::vector<MadeRow> rows;
  for (size_t i = 0; i < mixers.size(); ++i) rows.push_back({"row" + std::to_string(i), {1, 2, 3}});
  auto results = results_of(rows);
  for (size_t i = 0; i < mixers.size(); ++i) {
    results["runs"][i]["config"] = {{"model.attention", mixers[i]}, {"training.schedule.type", schedule}};
  }
  return results;
}

TEST(Protocol, SaysWhatAComparisonLacks) {
  EXPECT_THAT(protocol_gaps(trained({"full", "full"})),
              ElementsAre(HasSubstr("No variant has tuned"), HasSubstr("one size")));
  EXPECT_THAT(protocol_gaps(trained({"full", "linear"}, "constant")),
              ElementsAre(HasSubstr("No variant has tuned"), HasSubstr("one size"),
                          HasSubstr("not cooled down"), HasSubstr("short convolution")));
  auto results = trained({"full", "delta"});
  results["sizes"] = {{"names", {"small", "large"}}};
  results["seeds"] = {1, 2};
  results["tuning"] = {
      {"variants", {{{"name", "row0"}, {"chosen", "lr=0.001"}, {"keys_at_edge", Json::array()}}}}};
  EXPECT_THAT(protocol_gaps(results), ElementsAre("There are 2 seeds, where three are the least."));
  results["tuning"]["variants"][0]["keys_at_edge"] = {"training.optimizer.lr"};
  EXPECT_THAT(protocol_gaps(results), ElementsAre(HasSubstr("of row0 is at the edge"), HasSubstr("2 seeds")));
  results["tuning"]["variants"][0]["chosen"] = "weight_decay=0.1";
  EXPECT_THAT(protocol_gaps(results), ElementsAre(HasSubstr("not among the keys"), HasSubstr("2 seeds")));
}

TEST(Protocol, IsForTrainings) {
  auto results = trained({"full", "linear"});
  for (auto& run : results["runs"]) {
    for (auto& seed : run["seeds"]) seed["end"] = "elsewhere";
  }
  EXPECT_THAT(protocol_gaps(results), IsEmpty());
}

}  // namespace
}  // namespace zoo
