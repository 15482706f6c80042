#include "pages/tables/report_markdown.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/pages/made_up_results.h"

namespace zoo {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

/// Two runs with chosen numbers; the second run is worse.
Json two_runs() {
  auto results = testing::three_families();
  auto& runs = results["runs"];
  runs.erase(2);
  runs[0]["metric"] = {{"mean", 0.6844}, {"low", 0.68}, {"high", 0.6888}, {"deviation", 0.002}, {"n", 3}};
  runs[1]["metric"] = {{"mean", 0.6372}, {"low", 0.6212}, {"high", 0.6532}, {"deviation", 0.007}, {"n", 3}};
  runs[1]["versus_baseline"] = {{"difference", -0.0472}, {"low", -0.06},          {"high", -0.03},
                                {"p", 0.0055},           {"p_corrected", 0.0055}, {"verdict", "worse"}};
  runs[0]["parameters"] = 1'234'567;
  runs[1]["parameters"] = 786'000;
  results["match"] = nullptr;
  results["notices"] = {{{"kind", "data"}, {"text", "the runs see different data"}}};
  results["fair"] = true;
  mark_best_values(results);
  return results;
}

TEST(ReportMarkdown, SaysWhatWasSaidAndWhatWasMeasured) {
  const auto page = report_markdown(testing::three_families());
  EXPECT_THAT(page, StartsWith("# An encoder, a decoder and both as classifiers\n\n"
                               "**What people say.** Encoders are the ones that classify;"));
  EXPECT_THAT(page, HasSubstr("\n**What was measured.** encoder-decoder has the best accuracy"));
  EXPECT_THAT(page, HasSubstr("- **failure**: encoder-decoder: 1 of 3 seeds failed\n"));
  EXPECT_THAT(page, HasSubstr("(1 of 3 seeds failed) |"));
  EXPECT_THAT(page, HasSubstr("```\nzoo compare configs/compare/three-families.yaml --seeds 3\n```\n"));
  EXPECT_THAT(
      page,
      HasSubstr(
          "- Budget of a run: 400 steps\n- Seeds: 1, 2, 3\n- Matched: parameters at 790 k, within 1.3 %"));
  EXPECT_THAT(
      page,
      HasSubstr("- Machine: Made-up Processor 9000, 2 cores, 2 threads used, 16 GB, device cpu, Linux 6.1"));
  EXPECT_THAT(page, HasSubstr("- Made with: transformer-zoo 0.1.0, commit 0123456789ab, LibTorch 2.13.0, "
                              "compiler GNU 12.2.0"));
}

TEST(ReportMarkdown, LaysRunsSideBySide) {
  const auto page = report_markdown(two_runs());
  EXPECT_THAT(page, HasSubstr("| run | accuracy (%) | against the baseline | parameters | FLOPs / token | "
                              "training tokens/s | prefill tokens/s | decode tokens/s |"));
  EXPECT_THAT(
      page,
      HasSubstr("- Power: 3 seeds in 2 tests find a difference of 2 standard deviations of a run with a "
                "probability of 34 %; 7 seeds find it with 80 %"));
  EXPECT_THAT(page, HasSubstr("\n|---|---:|---:|---:|---:|"));
  EXPECT_THAT(page, HasSubstr("\n| encoder | **68.44** ± 0.44 | baseline | 1.23 M |"));
  EXPECT_THAT(
      page,
      HasSubstr("\n| decoder | 63.72 ± 1.60 | **worse**, −4.72 (−6.00 to −3.00), p = 0.0055 | **786 k** |"));
  EXPECT_THAT(page, HasSubstr("- **data**: the runs see different data\n"));
  EXPECT_THAT(page, HasSubstr("| run | 32 tokens | 64 tokens |"));
}

TEST(ReportMarkdown, CallsNoneTheBestOfWhatWasMadeEqual) {
  auto results = two_runs();
  results["match"] = {{"quantity", "parameters"}, {"target", 1e6}, {"spread", 0.3}};
  mark_best_values(results);
  EXPECT_THAT(report_markdown(results), HasSubstr("p = 0.0055 | 786 k |"));
}

TEST(ReportMarkdown, GivesTheMetricAtOtherLengths) {
  auto results = two_runs();
  results["runs"][0]["lengths"] = {{{"length", 64}, {"mean", 0.5}, {"low", 0.4}, {"high", 0.6}}};
  results["runs"][1]["lengths"] = {{{"length", 256}, {"mean", 0.25}, {"low", nullptr}, {"high", nullptr}}};
  const auto page = report_markdown(results);
  EXPECT_THAT(page, HasSubstr("| run | 64 tokens | 256 tokens |\n|---|---:|---:|\n"
                              "| encoder | 50.00 ± 10.00 | – |\n| decoder | – | 25.00 |\n"));
}

TEST(ReportMarkdown, ShowsOnlyWhatDiffers) {
  const auto page = report_markdown(two_runs());
  EXPECT_THAT(page, HasSubstr("| key | encoder | decoder |\n"));
  EXPECT_THAT(page, HasSubstr("| `model.architecture` | `encoder` | `decoder` |\n"));
  EXPECT_THAT(page, Not(HasSubstr("training.steps")));
  // Many runs become rows.
  EXPECT_THAT(report_markdown(testing::many_runs(9)),
              HasSubstr("| run | `model.architecture` | `model.n_layers` | `model.d_model` |\n"));
}

TEST(ReportMarkdown, GivesTheWayOfTheCurves) {
  auto results = two_runs();
  for (auto& seed : results["runs"][0]["seeds"])
    seed["curve"] = {{"step", {10, 20, 30}}, {"metric", {0.25, 0.5, 0.625}}};
  results["runs"][0]["seeds"][2]["curve"]["metric"] = {0.25, 0.5, 0.655};  // mean of the last: 0.635
  EXPECT_THAT(report_markdown(results),
              HasSubstr("- encoder: 25.00 at step 10, 50.00 at step 20, 63.50 at step 30\n"));
}

TEST(ReportMarkdown, LetsNoTextBecomeMarkup) {
  auto results = two_runs();
  results["title"] = "a|b <b> *c* _d_ [e] `f`\n# g";
  results["runs"][0]["name"] = "x|y\nz";
  results["runs"][0]["config"]["model.d_model"] = "1|2`3";
  const auto page = report_markdown(results);
  EXPECT_THAT(page, StartsWith("# a\\|b \\<b\\> \\*c\\* \\_d\\_ \\[e\\] \\`f\\` \\# g\n"));
  EXPECT_THAT(page, HasSubstr("| x\\|y z | **68.44**"));
  EXPECT_THAT(page, HasSubstr("| `model.d_model` | `1\\|2'3` |"));
}

TEST(ReportMarkdown, IsTheSameForTheSameResults) {
  EXPECT_EQ(report_markdown(testing::many_runs(5)), report_markdown(testing::many_runs(5)));
}

TEST(ReportMarkdown, SaysWhatTheDocumentLacks) {
  auto results = two_runs();
  results.erase("metric");
  EXPECT_THROW(report_markdown(results), DataError);
}

}  // namespace
}  // namespace zoo
