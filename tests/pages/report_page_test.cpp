#include "pages/report/report_page.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/pages/made_up_results.h"
#include "tests/pages/page_support.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

using ::testing::AllOf;
using testing::between;
using testing::count;
using testing::data_of;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr size_t kMostBytes = 10'000'000;

std::string message_of(const Json& results) {
  try {
    report_page(results);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

/// A document with only the required fields.
Json smallest() {
  return {{"schema", "transformer-zoo/comparison/2"},
          {"name", "small"},
          {"metric", {{"key", "loss"}, {"label", "loss"}, {"better", "lower"}, {"percent", false}}},
          {"seeds", {1}},
          {"runs", {{{"name", "a"}, {"metric", nullptr}, {"seeds", {{{"seed", 1}, {"end", "all_steps"}}}}}}}};
}

TEST(ReportPage, HoldsTheNumbersOfTheResults) {
  const auto results = testing::three_families();
  const auto data = data_of(report_page(results));
  for (const auto* key :
       {"name", "title", "folklore", "measured", "command", "created", "machine", "versions", "task",
        "metric", "budget", "match", "seeds", "fair", "notices", "differences"})
    EXPECT_EQ(data[key], results[key]) << key;
  ASSERT_EQ(data["runs"].size(), results["runs"].size());
  for (size_t i = 0; i < results["runs"].size(); ++i) {
    const auto &shown = data["runs"][i], &run = results["runs"][i];
    for (const auto* key : {"name", "architecture", "parameters", "flops_per_token", "metric",
                            "peak_memory_bytes", "scaling", "samples"})
      EXPECT_EQ(shown[key], run[key]) << key;
    for (const auto* key : {"maps", "rollout", "source_tokens", "target_tokens", "target_next", "text"})
      EXPECT_EQ(shown["attention"][key], run["attention"][key]) << key;
    for (const auto& [key, value] : shown["speed"].items()) EXPECT_EQ(value, run["speed"][key]) << key;
    ASSERT_EQ(shown["seeds"].size(), run["seeds"].size());
    for (size_t s = 0; s < run["seeds"].size(); ++s)
      for (const auto* key : {"seed", "end", "steps", "tokens", "seconds"})
        EXPECT_EQ(shown["seeds"][s][key], run["seeds"][s][key]) << key;
  }
}

TEST(ReportPage, ThinsLongCurvesAndKeepsTheirEnds) {
  auto results = testing::three_families();
  auto& train = results["runs"][0]["seeds"][0]["train_curve"];
  for (auto& [key, list] : train.items()) {
    list = Json::array();
    for (int i = 0; i < 1000; ++i) list.push_back(i + 1.0 / 3);
  }
  const auto data = data_of(report_page(results));
  const auto& shown = data["runs"][0]["seeds"][0]["train_curve"];
  for (const auto& [key, list] : shown.items()) {
    ASSERT_EQ(list.size(), 120U) << key;
    EXPECT_EQ(list.front(), 0.333333);
    EXPECT_EQ(list.back(), 999.333);
    for (size_t i = 1; i < list.size(); ++i) EXPECT_LT(list[i - 1], list[i]);
  }
  const auto& whole = data["runs"][0]["seeds"][0]["curve"];
  EXPECT_EQ(whole["step"], results["runs"][0]["seeds"][0]["curve"]["step"]);
}

TEST(ReportPage, HoldsOnlyKeysThatDiffer) {
  const auto results = testing::three_families();
  ASSERT_TRUE(results["runs"][0]["config"].contains("training.steps"));
  const auto data = data_of(report_page(results));
  const Json expected = {
      {"model.architecture", "encoder"}, {"model.n_layers", "4"}, {"model.d_model", "128"}};
  EXPECT_EQ(data["runs"][0]["config"], expected);
}

TEST(ReportPage, StaysSmallWithTwoHundredRuns) {
  const auto results = testing::many_runs(200);
  ASSERT_GT(results.dump().size(), 2 * kMostBytes);  // there is something to leave out
  const auto page = report_page(results);
  EXPECT_LT(page.size(), kMostBytes);
  const auto data = data_of(page);
  EXPECT_EQ(data["runs"].size(), 200U);
  int64_t without_maps = 0;
  for (size_t i = 0; i < data["runs"].size(); ++i) {
    const auto &run = data["runs"][i], &seed = run["seeds"][0], &whole = results["runs"][i]["seeds"][0];
    without_maps += run["attention"].is_null();
    // The curve of a run that failed early is short already in the results.
    EXPECT_GE(seed["curve"]["step"].size(), std::min<size_t>(12, whole["curve"]["step"].size()));
    EXPECT_EQ(seed["train_curve"]["step"].back(), whole["train_curve"]["step"].back());
  }
  EXPECT_GT(without_maps, 0);
  EXPECT_EQ(data["left_out"]["attention"], without_maps);
  EXPECT_FALSE(data["runs"][0]["attention"].is_null());
}

TEST(ReportPage, LetsNoTextBecomeMarkup) {
  const std::string nasty = "</script><script>alert(1)</script><!-- {{data}} \"&\xff";
  auto results = testing::three_families();
  for (const auto* key : {"name", "title", "folklore", "measured", "command"}) results[key] = nasty;
  results["notices"][0]["text"] = nasty;
  auto& run = results["runs"][0];
  run["name"] = nasty;
  run["samples"][0]["output"] = nasty;
  run["attention"]["source_tokens"][0] = nasty;
  run["config"]["model.d_model"] = nasty;
  const auto page = report_page(results);
  EXPECT_EQ(count(page, "<script"), 2U);  // the data and the program
  EXPECT_EQ(count(page, "</script"), 2U);
  EXPECT_EQ(count(page, "</title"), 1U);
  EXPECT_EQ(count(page, "<!--"), 0U);
  const std::string readable = "</script><script>alert(1)</script><!-- {{data}} \"&\uFFFD";
  const auto data = data_of(page);
  EXPECT_EQ(data["title"], readable);
  EXPECT_EQ(data["runs"][0]["name"], readable);
  EXPECT_EQ(
      between(page, "<title>", "</title>"),
      "Comparison: &lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- {{data}} &quot;&amp;\uFFFD");
}

TEST(ReportPage, NeedsNothingButItself) {
  const auto page = report_page(testing::three_families());
  for (const auto* reference :
       {"https:", "src=", "@import", "url(\"", "url(h", "<link", "{{style}}", "{{script}}"})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  EXPECT_EQ(count(page, "http:"), count(page, R"("http://www.w3.org/2000/svg")"));  // a name, not an address
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr("@media print"));
}

TEST(ReportPage, IsMadeOfWhatThereIs) {
  const auto data = data_of(report_page(smallest()));
  EXPECT_EQ(data["runs"][0]["name"], "a");
  EXPECT_TRUE(data["runs"][0]["attention"].is_null());
  EXPECT_EQ(data["left_out"]["attention"], 0);
}

TEST(ReportPage, SaysWhatTheDocumentLacks) {
  ASSERT_EQ(message_of(smallest()), "");
  const auto expect_complaint = [](const Json& results, const std::string& about) {
    const auto message = message_of(results);
    EXPECT_THAT(message, AllOf(StartsWith("results.json: "), HasSubstr(about),
                               EndsWith(": make it again with zoo compare")));
    EXPECT_THAT(message, Not(HasSubstr("\n")));
  };
  const auto without = [](auto change) {
    auto results = smallest();
    change(results);
    return results;
  };
  expect_complaint(Json::array(), "it is not a JSON object");
  expect_complaint(without([](Json& r) { r["schema"] = "other/2"; }), "its schema is \"other/2\"");
  expect_complaint(without([](Json& r) { r.erase("name"); }), "name is not a text");
  expect_complaint(without([](Json& r) { r.erase("metric"); }), "metric is not an object");
  expect_complaint(without([](Json& r) { r["metric"].erase("label"); }), "metric.label is not a text");
  expect_complaint(without([](Json& r) { r["metric"]["better"] = "left"; }), "metric.better is neither");
  expect_complaint(without([](Json& r) { r["metric"]["percent"] = 1; }),
                   "metric.percent is not true or false");
  expect_complaint(without([](Json& r) { r.erase("seeds"); }), "seeds is not a list");
  expect_complaint(without([](Json& r) { r["runs"] = Json::array(); }), "runs is empty");
  expect_complaint(without([](Json& r) { r["runs"][0].erase("name"); }), "runs[0].name is not a text");
  expect_complaint(without([](Json& r) { r["runs"][0].erase("metric"); }), "runs[0].metric is not an object");
  expect_complaint(without([](Json& r) { r["runs"][0]["metric"] = {{"mean", "1"}}; }),
                   "runs[0].metric.mean is not a number");
  expect_complaint(without([](Json& r) { r["runs"][0]["seeds"][0].erase("end"); }),
                   "runs[0].seeds[0].end is not a text");
  expect_complaint(
      without([](Json& r) { r["runs"][0]["seeds"][0]["curve"] = {{"step", {1, 2}}, {"metric", {1}}}; }),
      "runs[0].seeds[0].curve.metric is not a list of as many values as");
}

/// Leaves one evaluation for each seed, each at another step, as under a short budget of seconds.
void evaluate_once(Json& run) {
  for (size_t i = 0; i < run["seeds"].size(); ++i) {
    auto& curve = run["seeds"][i]["curve"];
    for (auto& [key, list] : curve.items()) list = Json::array({list.back()});
    for (const char* axis : {"step", "tokens", "flops", "seconds"})
      curve[axis][0] = curve[axis][0].get<double>() * (1 - 0.1 * static_cast<double>(i));
  }
}

/// Writes pages and their documents to $ZOO_REPORT_PAGES for report_browser.py.
TEST(ReportPage, WritesPagesForABrowser) {
  const testing::TempDir temporary;
  const char* chosen = std::getenv("ZOO_REPORT_PAGES");
  const std::filesystem::path dir = chosen ? std::filesystem::path(chosen) : temporary.path();
  std::filesystem::create_directories(dir);
  const auto write = [&dir](const std::string& name, const Json& results) {
    std::ofstream(dir / (name + ".json")) << results.dump();
    std::ofstream(dir / (name + ".html")) << report_page(results);
    EXPECT_GT(std::filesystem::file_size(dir / (name + ".html")), 100'000U);
  };
  write("three-families", testing::three_families());
  write("norm-placement", testing::norm_placement());
  auto without_grid = testing::norm_placement();  // as written before results had the grid
  without_grid["sizes"] = nullptr;
  for (const char* key : {"variants", "grid", "note", "yaml"}) without_grid.erase(key);
  for (auto& run : without_grid["runs"]) run.erase("variant"), run.erase("grid");
  write("without-grid", without_grid);
  auto unfinished = testing::norm_placement();
  unfinished["progress"] = {
      {"finished", 3}, {"runs", 12}, {"finished_trainings", 13}, {"trainings", 48}, {"stopped", false}};
  write("unfinished", unfinished);
  auto many = testing::many_runs(200);
  evaluate_once(many["runs"][0]);
  many["runs"][17]["flops_per_token"] = 1;  // it has failed
  write("many-runs", many);
  std::ofstream(dir / "smallest.json") << smallest().dump();
  std::ofstream(dir / "smallest.html") << report_page(smallest());
}

}  // namespace
}  // namespace zoo
