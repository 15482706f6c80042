#include "pages/attention/image_attention_page.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "base/error.h"
#include "data/images/image_file.h"
#include "io/files.h"
#include "pages/attention/attention_page.h"
#include "tests/pages/page_support.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

using testing::between;
using testing::count;
using testing::data_of;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Image picture(int64_t height, int64_t width) {
  Image image{.shape = {.channels = 3, .height = height, .width = width}, .pixels = {}};
  for (int64_t i = 0; i < 3 * height * width; ++i)
    image.pixels.push_back(static_cast<uint8_t>(i * 7 / 3 % 251));
  return image;
}

std::vector<std::string> names(const std::string& what, int64_t n) {
  std::vector<std::string> list;
  for (int64_t i = 0; i < n; ++i) list.push_back(fmt::format("{} {}", what, i));
  return list;
}

torch::Tensor weights(int64_t T, int64_t S) { return torch::randn({3, T, S}).mul(2).softmax(-1); }

/// A classifier's, of a wide picture of which it sees the middle.
AttentionReport picture_report() {
  torch::manual_seed(1);
  const PatchGrid grid{.rows = 3, .columns = 3, .n_before = 1, .patch_size = 8};
  AttentionReport report{.name = "a<b", .source_tokens = names("place", 10)};
  report.source_tokens[0] = "class";
  for (int64_t layer = 0; layer < 2; ++layer)
    report.layers.push_back({AttentionKind::encoder, layer, weights(10, 10)});
  report.image = AttendedImage{
      .file = "pictures/<script>alert(1)<script>.png",
      .picture = picture(40, 60),
      .grid = grid,
      .part = {.x = 10, .y = 0, .width = 40, .height = 40},
      .prediction = {.input = "x.png", .answer = PredictedLabels{{{"</script>", 0.75}, {"{{data}}", 0.25}}}}};
  return report;
}

/// A detector's, of a picture that it sees whole.
AttentionReport detector_report() {
  torch::manual_seed(2);
  AttentionReport report{.name = "detector", .source_tokens = names("place", 20)};
  report.target_tokens = names("query", 4);
  report.layers = {{AttentionKind::encoder, 0, weights(20, 20)},
                   {AttentionKind::encoder, 1, weights(20, 20)},
                   {AttentionKind::decoder, 0, weights(4, 4)},
                   {AttentionKind::cross, 0, weights(4, 20)},
                   {AttentionKind::cross, 1, weights(4, 20)}};
  report.image =
      AttendedImage{.file = "street.png",
                    .picture = picture(80, 100),
                    .grid = {.rows = 4, .columns = 5, .n_before = 0, .patch_size = 32},
                    .part = {.x = 0, .y = 0, .width = 100, .height = 80},
                    .prediction = {.input = "street.png",
                                   .answer = PredictedObjects{{{"<b>cat", 0.95, {10, 20, 30, 40}, 3},
                                                               {"dog", 0.6, {50, 10, 40, 60}, 1},
                                                               {"dog", 0.2, {0, 0, 5, 5}, 0}}}}};
  return report;
}

std::string decoded(const std::string& base64) {
  static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c)), n_bits += 6;
    if (n_bits >= 8) n_bits -= 8, bytes += static_cast<char>(bits >> n_bits & 255);
  }
  return bytes;
}

/// Each weight is off by at most half of 1/255 of the largest of its row, and a millionth.
void expect_packed(const nlohmann::json& packed, const torch::Tensor& expected) {
  const auto bytes = decoded(packed["rows"]);
  const int64_t T = expected.size(0), S = expected.size(1);
  ASSERT_EQ(std::ssize(bytes), T * S);
  ASSERT_EQ(std::ssize(packed["tops"]), T);
  for (int64_t t = 0; t < T; ++t) {
    const double top = packed["tops"][static_cast<size_t>(t)].get<double>() / 1e6;
    EXPECT_NEAR(top, expected[t].max().item<double>(), 1.01e-6);
    for (int64_t s = 0; s < S; ++s) {
      const double weight = static_cast<uint8_t>(bytes[static_cast<size_t>(t * S + s)]) / 255.0 * top;
      EXPECT_NEAR(weight, expected[t][s].item<double>(), top / 510 + 1.01e-6);
    }
  }
}

TEST(ImageAttentionPage, HoldsTheWeights) {
  for (const auto& report : {picture_report(), detector_report()}) {
    const auto data = data_of(attention_page(report));
    std::map<std::string, size_t> n_layers;
    for (const auto& [kind, layer, layer_weights] : report.layers) {
      const auto map = std::ranges::find_if(
          data["maps"], [&](const auto& entry) { return entry["kind"] == name_of(kind); });
      ASSERT_NE(map, data["maps"].end());
      const auto& heads = (*map)["layers"][n_layers[std::string(name_of(kind))]++];
      ASSERT_EQ(heads.size(), 3U);
      for (size_t h = 0; h < 3; ++h) expect_packed(heads[h], layer_weights[static_cast<int64_t>(h)]);
    }
    const auto rollouts = attention_rollout(report);
    ASSERT_EQ(data["rollout"].size(), rollouts.size());
    for (size_t i = 0; i < rollouts.size(); ++i) {
      EXPECT_EQ(data["rollout"][i]["kind"], name_of(rollouts[i].kind));
      EXPECT_EQ(data["rollout"][i]["layer"], rollouts[i].layer);
      expect_packed(data["rollout"][i], rollouts[i].weights);
    }
    EXPECT_EQ(data["heads"], nlohmann::ordered_json::parse(to_json(head_statistics(report))));
  }
}

TEST(ImageAttentionPage, HoldsThePicture) {
  const auto embedded = [](const AttentionReport& report) {
    const std::string uri = data_of(attention_page(report))["picture"], begin = "data:image/png;base64,";
    EXPECT_THAT(uri, StartsWith(begin));
    return decode_image(decoded(uri.substr(begin.size())), "picture", 3);
  };
  auto report = picture_report();
  EXPECT_EQ(embedded(report).pixels, report.image->picture.pixels);
  report.image->picture = picture(30, 4000);
  const Image smaller = embedded(report);
  EXPECT_EQ(smaller.shape.width, 1600);
  EXPECT_EQ(smaller.shape.height, 12);
  EXPECT_EQ(data_of(attention_page(report))["width"], 4000) << "boxes are in pixels of the file";
}

TEST(ImageAttentionPage, LetsNoTextBecomeMarkup) {
  for (const auto& report : {picture_report(), detector_report()}) {
    const auto page = attention_page(report);
    EXPECT_EQ(count(page, "<script"), 2U);  // the data and the program
    EXPECT_EQ(count(page, "</script"), 2U);
    for (const auto* reference : {"http:", "https:", "src=", "@import", "url(", "<link"})
      EXPECT_THAT(page, Not(HasSubstr(reference)));
    EXPECT_THAT(page, Not(HasSubstr("{{style}}")));
  }
  EXPECT_EQ(between(attention_page(picture_report()), "<title>", "</title>"),
            "Attention: &lt;script&gt;alert(1)&lt;script&gt;.png");
}

TEST(ImageAttentionPage, SaysWhenAPictureHasTooManyPlaces) {
  auto report = picture_report();
  report.layers = {{AttentionKind::encoder, 0, torch::zeros({1}).expand({1, 7000, 7000})}};
  EXPECT_THAT(testing::message_of<DataError>([&] { attention_page(report); }),
              HasSubstr("too many for a page"));
}

// The browser test opens these pages, too.
TEST(ImageAttentionPage, WritesPagesForABrowser) {
  testing::write_attention_pages(
      {{"attention-picture.html", picture_report()}, {"attention-detector.html", detector_report()}});
}

}  // namespace
}  // namespace zoo
