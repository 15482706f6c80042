#include "pages/tables/expert_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pages/report/report_page.h"
#include "pages/tables/report_markdown.h"
#include "tests/pages/made_up_results.h"
#include "tests/pages/page_support.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ExpertTables, AreOnThePageAndInMarkdown) {
  auto results = norm_placement();
  const auto loads = expert_loads_of(results["runs"][0]);
  ASSERT_EQ(loads.size(), 2U);
  EXPECT_EQ(loads[0].place, "layers.0.feed_forward");
  EXPECT_THAT(loads[0].tokens, ElementsAre(40, 10, 0, 30));
  EXPECT_DOUBLE_EQ(loads[0].busiest(), 2.0);
  EXPECT_EQ(loads[0].n_idle(), 1);
  EXPECT_THAT(expert_loads_of(results["runs"][2]), IsEmpty()) << "a dense model";

  const auto data = data_of(report_page(results));
  EXPECT_EQ(data["runs"][0]["experts"], results["runs"][0]["experts"]);
  EXPECT_FALSE(data["runs"][2].contains("experts"));
  EXPECT_FALSE(data["runs"][0]["seeds"][0]["train_curve"]["router_entropy"].empty());
  EXPECT_THAT(report_markdown(results), HasSubstr("=0 | 2.00 | 2 of 8 |"));
  EXPECT_THAT(report_markdown(results), HasSubstr("=100 | 1.00 | 0 of 128 |"));
  results["runs"].erase(1);
  results["runs"].erase(0);
  EXPECT_THAT(report_markdown(results), Not(HasSubstr("## Experts")));
}

TEST(ExpertTables, DamagedOnesAreLeftOut) {
  const Json layer = {{"place", "layers.0.feed_forward"}, {"tokens", {1, 2}}};
  EXPECT_EQ(expert_loads_of({{"experts", {layer}}}).size(), 1U);
  EXPECT_THAT(expert_loads_of({{"experts", layer}}), IsEmpty());
  EXPECT_THAT(expert_loads_of({{"experts", {layer, 7}}}), IsEmpty());
  for (const Json& tokens :
       {Json("x"), Json::array(), Json({1, -2}), Json({1, 2.5}), Json({1, int64_t{1} << 50})}) {
    auto damaged = layer;
    damaged["tokens"] = tokens;
    EXPECT_THAT(expert_loads_of({{"experts", {damaged}}}), IsEmpty()) << tokens;
  }
}

}  // namespace
}  // namespace zoo::testing
