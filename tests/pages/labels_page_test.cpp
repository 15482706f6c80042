// The page of texts with a label for each word or character.

#include "pages/labels_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/pages/page_support.h"

namespace zoo::testing {
namespace {

TEST(LabelsPage, HasTheTextsAsJson) {
  Prediction prediction{.input = "M</script>"};
  prediction.answer =
      PredictedTokens{{{.token = "M", .labels = {{.label = "H", .probability = 0.876}}},
                       {.token = "</script>", .labels = {{.label = "E", .probability = 0.5}}}}};
  const auto page =
      labels_page("a < b", {{.prediction = prediction, .truth = {"H", "-"}}, {.prediction = prediction}});
  const auto data = data_of(page);
  EXPECT_EQ(data["title"], "a < b");
  ASSERT_EQ(data["texts"].size(), 2U);
  const auto& text = data["texts"][0];
  EXPECT_EQ(text["tokens"], nlohmann::ordered_json({"M", "</script>"}));
  EXPECT_EQ(text["labels"], nlohmann::ordered_json({"H", "E"}));
  EXPECT_EQ(text["probabilities"], nlohmann::ordered_json({88, 50}));
  EXPECT_EQ(text["truth"], nlohmann::ordered_json({"H", "-"}));
  EXPECT_TRUE(data["texts"][1]["truth"].is_null());
  EXPECT_EQ(count(page, "<title>Labels: a &lt; b</title>"), 1U);
}

}  // namespace
}  // namespace zoo::testing
