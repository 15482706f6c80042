#include "pages/tables/confusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pages/report/report_page.h"
#include "pages/tables/report_document.h"
#include "pages/tables/report_markdown.h"
#include "tests/pages/made_up_results.h"
#include "tests/pages/page_support.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Json matrix(std::vector<std::vector<int64_t>> counts, std::vector<std::string> labels = {"a", "b", "c"}) {
  return {{"labels", std::move(labels)}, {"counts", std::move(counts)}};
}

Json run_with(const Json& confusion) { return {{"confusion", confusion}}; }

TEST(Confusion, IsReadAsItIs) {
  const auto confusion = confusion_of(run_with(matrix({{5, 1, 0}, {2, 3, 4}, {0, 0, 6}})));
  ASSERT_TRUE(confusion);
  EXPECT_EQ(confusion->labels, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(confusion->counts[1], (std::vector<int64_t>{2, 3, 4}));
}

TEST(Confusion, WhatIsNoMatrixIsNone) {
  EXPECT_FALSE(confusion_of(Json::object())) << "results.json of an older program";
  EXPECT_FALSE(confusion_of(run_with(nullptr)));
  EXPECT_FALSE(confusion_of(run_with(matrix({}, {}))));
  EXPECT_FALSE(confusion_of(run_with(matrix({{1, 2, 3}, {1, 2, 3}}))));
  EXPECT_FALSE(confusion_of(run_with(matrix({{1, 2, 3}, {1, 2, 3}, {1, 2}}))));
  EXPECT_FALSE(confusion_of(run_with(matrix({{1, 2, 3}, {1, -2, 3}, {1, 2, 3}}))));
  for (const Json& bad : {Json("x"), Json(1.5), Json(nullptr), Json(int64_t{1} << 60), Json::array()}) {
    auto confusion = matrix({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
    confusion["counts"][1][1] = bad;
    EXPECT_FALSE(confusion_of(run_with(confusion))) << bad;
    confusion = matrix({{1, 2, 3}, {1, 2, 3}, {1, 2, 3}});
    confusion["labels"][2] = 7;
    EXPECT_FALSE(confusion_of(run_with(confusion)));
  }
}

TEST(Confusion, OfSeedsIsTheirSum) {
  std::optional<ConfusionMatrix> sum;
  add_confusion(sum, std::nullopt);
  EXPECT_FALSE(sum);
  add_confusion(sum, confusion_matrix(matrix({{1, 2}, {3, 4}}, {"a", "b"})));
  add_confusion(sum, confusion_matrix(matrix({{10, 20}, {30, 40}}, {"a", "b"})));
  const std::vector<std::vector<int64_t>> counts = {{11, 22}, {33, 44}};
  EXPECT_EQ(sum->counts, counts);
  add_confusion(sum, confusion_matrix(matrix({{1, 1}, {1, 1}}, {"a", "other"})));
  add_confusion(sum, confusion_matrix("damaged"));
  EXPECT_EQ(sum->counts, counts);
  EXPECT_EQ(sum->labels, (std::vector<std::string>{"a", "b"}));
}

TEST(Confusion, TheCommonestMistakesComeFirst) {
  const auto confusion = confusion_of(run_with(matrix({{5, 1, 0}, {2, 3, 5}, {2, 0, 6}}))).value();
  const auto mistakes = commonest_mistakes(confusion, 3);
  ASSERT_THAT(mistakes, SizeIs(3));
  EXPECT_EQ(mistakes[0].right, "b");
  EXPECT_EQ(mistakes[0].predicted, "c");
  EXPECT_EQ(mistakes[0].count, 5);
  EXPECT_DOUBLE_EQ(mistakes[0].share, 0.5);
  EXPECT_EQ(mistakes[1].right, "b") << "a tie, in the order of the labels";
  EXPECT_EQ(mistakes[2].right, "c");
  EXPECT_THAT(
      commonest_mistakes(confusion_of(run_with(matrix({{1, 0, 0}, {0, 0, 0}, {0, 0, 1}}))).value(), 5),
      IsEmpty());
}

TEST(Confusion, IsOnThePageAndInMarkdown) {
  auto results = three_families();
  const auto data = data_of(report_page(results));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(data["runs"][i]["confusion"], results["runs"][i]["confusion"]);
  const auto mistakes = commonest_mistakes(confusion_of(results["runs"][0]).value(), 5);
  EXPECT_THAT(report_markdown(results), HasSubstr("## Mistakes"));
  EXPECT_THAT(report_markdown(results),
              HasSubstr(fmt::format("{} ({:.0f} %)", mistakes[0].count, 100 * mistakes[0].share)));
  EXPECT_THAT(report_markdown(results), Not(HasSubstr("</script>")));

  // An older results.json, a damaged one, and one that is too large for a page.
  results["runs"][0].erase("confusion");
  results["runs"][1]["confusion"]["counts"] = "x";
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i) many.push_back(std::to_string(i));
  results["runs"][2]["confusion"] = made_up_confusion(many, 1);
  const auto without = data_of(report_page(results));
  for (const auto& run : without["runs"])
    EXPECT_TRUE(!run.contains("confusion") || run["confusion"].is_null());
  EXPECT_EQ(without["left_out"]["confusion"], 1);
  results["runs"].erase(2);
  EXPECT_THAT(report_markdown(results), Not(HasSubstr("## Mistakes")));
}

}  // namespace
}  // namespace zoo::testing
