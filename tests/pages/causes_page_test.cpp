// The pages of the lens, of ablations and of patching.

#include "pages/causes/causes_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/images/image_file.h"
#include "tests/pages/page_support.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using Json = nlohmann::ordered_json;

Question question() {
  Question question;
  question.input = "a <b>";
  question.source_tokens = question.places = {"a", " ", "</script>"};
  question.targets = {1, 2, 0};
  question.place = 2;
  question.label = [](int64_t id) { return "token " + std::to_string(id); };
  return question;
}

LensReport lens() {
  LensReport report{.name = "a run", .question = question(), .depths = {}};
  for (int64_t depth = 0; depth < 3; ++depth) {
    auto& cells = report.depths.emplace_back();
    for (int64_t place = 0; place < 3; ++place) {
      cells.push_back(
          {.likeliest = {{.id = depth, .label = "token " + std::to_string(depth), .probability = 0.5}},
           .probability = 0.25 * static_cast<double>(depth),
           .rank = 2,
           .divergence = 0.125});
    }
  }
  return report;
}

LensContributions parts() {
  return {.place = 2,
          .output = 0,
          .contributions = {.logit = 1.5,
                            .parts = {{"residual.0", 0.5}, {"layers.0.feed_forward", -1}, {"x", 2}}}};
}

AblationReport ablation() {
  AblationReport report{
      .name = "a run", .data = "valid: x.txt", .whole = {.nats = 20, .targets = 10, .right = 5}};
  const auto row = [&](const std::string& name, double nats) {
    report.rows.push_back(
        {.parts = {ablated_part(name)}, .score = {.nats = nats, .targets = 10, .right = 4}});
  };
  row("0.0", 25);
  row("0.1", 19);
  row("1.1", 20);
  row("layers.1.feed_forward", 40);
  report.rows.push_back(
      {.parts = {ablated_part("0.0"), ablated_part("0.1")}, .score = {.nats = 30, .targets = 10}});
  return report;
}

PatchReport patches() {
  PatchReport report{.name = "a run", .clean = question(), .corrupt = question(), .answer = 1, .against = 2};
  report.corrupt.source_tokens[1] = "x";
  report.clean_difference = 2;
  report.corrupt_difference = -1;
  report.heads = {{.patch = {.part = ablated_part("1.0")}, .difference = 2, .recovered = 1}};
  for (int64_t layer = 0; layer < 2; ++layer)
    for (int64_t t = 0; t < 3; ++t)
      report.positions.push_back(
          {.patch = {.part = ablated_part("residual." + std::to_string(layer)), .position = t},
           .difference = 0,
           .recovered = static_cast<double>(layer) - 0.25 * static_cast<double>(t)});
  return report;
}

TEST(CausesPage, OfTheLensHasEachDepthAndThePartsOfTheLogit) {
  const auto page = lens_page(lens(), parts());
  EXPECT_EQ(count(page, "<title>Lens: a &lt;b&gt;</title>"), 1U);
  const auto data = data_of(page);
  const auto& grid = data["grids"][0];
  EXPECT_EQ(grid["rows"], Json({"2", "1", "0"}));
  EXPECT_EQ(grid["columns"], Json({"a", " ", "</script>"}));
  EXPECT_EQ(grid["values"][0], Json({0.5, 0.5, 0.5}));
  EXPECT_EQ(grid["texts"][2][0], "token 0");
  EXPECT_EQ(grid["hints"][0][1],
            "after 2 layers: “token 2” 0.500; right is “token 2” with 0.500, rank 2; divergence 0.125");
  const auto& bars = data["bars"][0];
  EXPECT_EQ(bars["title"], "Parts of the logit of “token 0” at place 2");
  EXPECT_EQ(bars["items"][0]["name"], "x");
  EXPECT_EQ(bars["items"][1]["value"], -1);
  EXPECT_TRUE(data_of(lens_page(lens(), std::nullopt))["bars"].empty());
}

TEST(CausesPage, OfATrainedLensSaysSo) {
  auto trained = lens();
  trained.kind = LensKind::trained;
  const auto page = lens_page(trained, parts());
  EXPECT_EQ(count(page, "<title>Trained lens: a &lt;b&gt;</title>"), 1U);
  EXPECT_EQ(
      data_of(page)["summary"],
      "2 layers, 3 places. The vectors after each layer go through a map that was trained for this layer, "
      "the final norm and the head.");
  EXPECT_EQ(data_of(lens_page(lens(), parts()))["summary"],
            "2 layers, 3 places. The vectors after each layer go through the final norm and the head.");
  const auto told =
      data_of(lens_page(lens(), LensContributions{.place = 2, .output = 0, .reason = "two heads"}));
  EXPECT_EQ(told["bars"][0]["note"], "two heads");
  EXPECT_TRUE(told["bars"][0]["items"].empty());
}

TEST(CausesPage, OfAnAblationHasHeadsAsATableAndOtherPartsAsBars) {
  const auto data = data_of(ablation_page(ablation()));
  ASSERT_EQ(data["grids"].size(), 1U);
  const auto& grid = data["grids"][0];
  EXPECT_EQ(grid["rows"], Json({"1", "0"}));
  EXPECT_EQ(grid["columns"], Json({"head 0", "head 1"}));
  EXPECT_TRUE(grid["values"][0][0].is_null()) << "head 1.0 was not ablated";
  EXPECT_EQ(grid["values"][0][1], 0);
  EXPECT_EQ(grid["values"][1][0], 0.5);
  EXPECT_NEAR(grid["values"][1][1].get<double>(), -0.1, 1e-12);
  EXPECT_EQ(data["bars"][0]["items"][0]["value"], 2);
  EXPECT_EQ(data["bars"][0]["items"][1]["name"], "layers.0.attention.heads.0 + layers.0.attention.heads.1");
  EXPECT_THAT(data["summary"].get<std::string>(), ::testing::HasSubstr("The loss is 2.0000 over 10 targets"));
}

TEST(CausesPage, OfPatchesHasHeadsAndPositions) {
  const auto data = data_of(patch_page(patches()));
  ASSERT_EQ(data["grids"].size(), 2U);
  EXPECT_EQ(data["grids"][0]["values"], Json::parse("[[1.0], [null]]"));
  const auto& stream = data["grids"][1];
  EXPECT_EQ(stream["title"], "residual stream");
  EXPECT_EQ(stream["columns"], Json({"a", "  / x", "</script>"}));
  EXPECT_EQ(stream["rows"], Json({"1", "0"}));
  EXPECT_EQ(stream["values"], Json({{1.0, 0.75, 0.5}, {0.0, -0.25, -0.5}}));
}

AttributionReport attribution() {
  AttributionReport report{.name = "a run", .question = question(), .place = 2, .answer = 0};
  report.score = 2;
  report.baseline_score = -0.5;
  report.source = {0.5, -1, 3.25};
  return report;
}

/// Of a picture of 6 × 4 pixels, of which a square in the middle is read.
AttributionReport picture_attribution(const TempDir& dir) {
  const Image image{.shape = {.channels = 3, .height = 4, .width = 6},
                    .pixels = std::vector<uint8_t>(4 * 6 * 3, 128)};
  dir.write("picture.png", encode_png(image));
  auto report = attribution();
  report.question.input = (dir / "picture.png").string();
  report.question.places = {"the whole picture"};
  report.source = {0.5, -1, 3.25, 0.125};
  report.picture = {.rows = 2, .columns = 2, .covered = Box{.x = 1, .y = 0, .width = 4, .height = 4}};
  return report;
}

TEST(CausesPage, OfAttributionsHasTokensInColours) {
  const auto data = data_of(attribution_page(attribution()));
  EXPECT_EQ(
      data["summary"],
      "The logit of “token 0” at place 2, by integrated gradients, baseline zero, 50 steps. It is 2.0000, "
      "and -0.5000 for the baseline. The attributions add up to 2.7500: the integral misses +0.2500.");
  const auto& text = data["texts"][0];
  EXPECT_EQ(text["tokens"], Json({"a", " ", "</script>"}));
  EXPECT_EQ(text["values"], Json({0.5, -1.0, 3.25}));
  EXPECT_EQ(text["most"], 3.25);
  EXPECT_EQ(data["bars"][0]["items"][0], Json({{"name", "2 “</script>”"}, {"value", 3.25}}));
  EXPECT_EQ(data["bars"][0]["items"][2]["value"], 0.5);
  auto both = attribution();
  both.target = {-4, 1};
  both.target_names = {"<bos>", "b"};
  const auto sides = data_of(attribution_page(both));
  EXPECT_EQ(sides["texts"][1]["title"], "Target");
  EXPECT_EQ(sides["texts"][0]["most"], 4);
  EXPECT_EQ(sides["bars"][0]["items"][0]["name"], "Target 0 “<bos>”");
}

TEST(CausesPage, OfAPictureHasItUnderItsParts) {
  const TempDir dir;
  const auto data = data_of(attribution_page(picture_attribution(dir)));
  EXPECT_TRUE(data["texts"].empty());
  const auto& picture = data["pictures"][0];
  EXPECT_EQ(picture["values"], Json({{0.5, -1.0}, {3.25, 0.125}}));
  EXPECT_EQ(picture["part"], Json({1.0, 0.0, 4.0, 4.0}));
  EXPECT_EQ(picture["size"], Json({6, 4}));
  EXPECT_THAT(picture["address"].get<std::string>(), ::testing::StartsWith("data:image/png;base64,"));
  EXPECT_EQ(data["bars"][0]["items"][0]["name"], "row 1 column 0");
}

TEST(CausesPage, WritesPagesForABrowser) {
  const TempDir dir;
  write_pages({{"causes-lens.html", lens_page(lens(), parts())},
               {"causes-ablation.html", ablation_page(ablation())},
               {"causes-patch.html", patch_page(patches())},
               {"causes-attribution.html", attribution_page(attribution())},
               {"causes-picture.html", attribution_page(picture_attribution(dir))}});
}

}  // namespace
}  // namespace zoo::testing
