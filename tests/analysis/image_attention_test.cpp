#include "analysis/image_attention.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/attention_rollout.h"
#include "analysis/attention_statistics.h"
#include "base/error.h"
#include "data/images/image_file.h"
#include "tasks/task.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A detector: its encoder has 2 × 3 places of 4 pixels, its decoder 2 queries. Its maps are given.
class GivenMaps final : public Model {
 public:
  GivenMaps() { register_parameter("weight", torch::zeros({1})); }  // a model is where its weights are
  torch::Tensor features(const Batch&) override { return {}; }
  torch::Tensor logits(const torch::Tensor& features) override { return features; }
  int64_t n_outputs() const override { return 1; }
  torch::Tensor hidden_states(const Batch&) override { return {}; }
  void attention_maps(const Batch&, AttentionMaps& to) override { to = maps; }
  std::optional<PatchGrid> patch_grid(const Batch&) const override { return grid; }

  AttentionMaps maps;
  std::optional<PatchGrid> grid = PatchGrid{.rows = 2, .columns = 3, .n_before = 0, .patch_size = 4};

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>&) const override {
    return nullptr;
  }
};

/// Its model sees all of a picture of 8 × 12 pixels.
class GivenObjects final : public Task {
 public:
  GivenObjects() : Task({}, {}) {}
  ModelPurpose purpose() const override { return {}; }
  ImageInputs read_inputs(const std::vector<std::string>& files) const override {
    const auto shape = read_image(files.front(), Follow::everything, 3).shape;
    ImageInputs inputs;
    inputs.batch.fields = {{"images", torch::zeros({1, 3, 8, 12})}};
    inputs.shown = {{0, 0, static_cast<double>(shape.width), static_cast<double>(shape.height)}};
    return inputs;
  }
  std::vector<Prediction> predict(Model&, const std::vector<std::string>& inputs,
                                  const PredictOptions&) override {
    return {{.input = inputs.front(),
             .answer = PredictedObjects{
                 {{"cat", 0.9, {1, 2, 3, 4}, 1}, {"dog", 0.25, {5, 6, 7, 8}, 1}, {"cow", 0.1, {}, {}}}}}};
  }

 private:
  std::unique_ptr<BatchSource> open(Split) override { return nullptr; }
};

torch::Tensor random_weights(int64_t T, int64_t S) { return torch::randn({1, 2, T, S}).softmax(-1); }

AttentionReport detector_report() {
  torch::manual_seed(1);
  const testing::TempDir dir;
  const auto file = dir.write("a.png", encode_png({.shape = {.channels = 1, .height = 16, .width = 24},
                                                   .pixels = std::vector<uint8_t>(16 * 24, 9)}));
  GivenMaps model;
  model.maps = {.encoder = {random_weights(6, 6), random_weights(6, 6)},
                .decoder = {random_weights(2, 2)},
                .cross = {random_weights(2, 6)}};
  GivenObjects task;
  return image_attention_report(model, task, file.string());
}

TEST(ImageAttention, OfADetectorHasPlacesAndQueries) {
  const auto report = detector_report();
  ASSERT_TRUE(report.image);
  EXPECT_FALSE(report.answers());
  EXPECT_THAT(report.source_tokens, ElementsAre("row 0 column 0", "row 0 column 1", "row 0 column 2",
                                                "row 1 column 0", "row 1 column 1", "row 1 column 2"));
  EXPECT_THAT(report.target_tokens, ElementsAre("query 0", "query 1: cat 0.90"));
  EXPECT_EQ(report.image->picture.shape.channels, 3);
  EXPECT_EQ(report.image->part.width, 24);
  EXPECT_EQ(report.image->part.height, 16);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["width"], 24);
  EXPECT_EQ(json["height"], 16);
  EXPECT_EQ(json["special"], 0);
  EXPECT_EQ(json["objects"][1],
            nlohmann::json({{"label", "dog"}, {"score", 0.25}, {"box", {5.0, 6.0, 7.0, 8.0}}, {"query", 1}}));
  EXPECT_TRUE(json["objects"][2]["query"].is_null());
  EXPECT_FALSE(json.contains("labels"));
  EXPECT_FALSE(json.contains("predictions"));
  ASSERT_EQ(json["layers"].size(), 4U);
  EXPECT_EQ(json["layers"][3]["kind"], "cross");
  EXPECT_EQ(json["layers"][3]["heads"][1].size(), 2U);
  EXPECT_EQ(json["layers"][3]["heads"][1][0].size(), 6U);
  EXPECT_EQ(json["rollout"].size(), 4U);
}

/// Its model sees 9 × 13 pixels, in an image that is padded to 10 × 16, of the middle of a picture.
class PaddedPicture final : public Task {
 public:
  PaddedPicture() : Task({}, {}) {}
  ModelPurpose purpose() const override { return {}; }
  ImageInputs read_inputs(const std::vector<std::string>&) const override {
    ImageInputs inputs;
    inputs.batch.fields = {{"images", torch::zeros({1, 3, 10, 16})},
                           {"image_sizes", torch::tensor({{9, 13}}, torch::kInt64)}};
    inputs.shown = {{3, 5, 26, 36}};
    return inputs;
  }
  std::vector<Prediction> predict(Model&, const std::vector<std::string>& inputs,
                                  const PredictOptions&) override {
    return {{.input = inputs.front()}};
  }

 private:
  std::unique_ptr<BatchSource> open(Split) override { return nullptr; }
};

// The grid of places lies on the pixels of the picture that it was made of, to its own right and lower end.
TEST(ImageAttention, PlacesCoverTheirPartOfThePicture) {
  const testing::TempDir dir;
  const auto file = dir.write("a.png", encode_png({.shape = {.channels = 1, .height = 46, .width = 32},
                                                   .pixels = std::vector<uint8_t>(46 * 32, 9)}));
  GivenMaps model;
  model.maps = {.encoder = {random_weights(6, 6)}, .decoder = {}, .cross = {}};
  PaddedPicture task;
  const auto report = image_attention_report(model, task, file.string());
  const auto& part = report.image->part;
  EXPECT_DOUBLE_EQ(part.x, 3);
  EXPECT_DOUBLE_EQ(part.y, 5);
  EXPECT_DOUBLE_EQ(part.width, 26 * 12.0 / 13) << "three places of four of 13 pixels";
  EXPECT_DOUBLE_EQ(part.height, 36 * 8.0 / 9);
}

TEST(ImageAttention, AModelWithoutPlacesIsRefused) {
  const testing::TempDir dir;
  const auto file =
      dir.write("a.png", encode_png({.shape = {.channels = 1, .height = 1, .width = 1}, .pixels = {0}}));
  GivenMaps model;
  model.grid = std::nullopt;
  GivenObjects task;
  EXPECT_THAT(testing::message_of<UsageError>([&] { image_attention_report(model, task, file.string()); }),
              HasSubstr("has no places of a picture"));
}

/// The report of one layer of one head.
AttentionReport one_head(AttentionKind kind, const torch::Tensor& weights, const PatchGrid& grid) {
  AttentionReport report{.layers = {{kind, 0, weights.unsqueeze(0)}}};
  report.image = AttendedImage{.file = {}, .picture = {}, .grid = grid, .part = {}, .prediction = {}};
  return report;
}

TEST(ImageAttention, DistancesAreThoseOnTheGrid) {
  const PatchGrid grid{.rows = 2, .columns = 3, .n_before = 1, .patch_size = 4};
  const auto distance = [&](const torch::Tensor& weights) {
    return head_statistics(one_head(AttentionKind::encoder, weights, grid)).front().distance.value();
  };
  EXPECT_DOUBLE_EQ(distance(torch::eye(7)), 0);
  // Every place looks at the class token with half of its weight, and at the place below or above with the
  // rest.
  auto other_row = torch::zeros({7, 7});
  other_row.select(1, 0).fill_(0.5);
  for (int64_t place = 0; place < 6; ++place) other_row[1 + place][1 + (place + 3) % 6] = 0.5;
  EXPECT_NEAR(distance(other_row), 1, 1e-12);
  // The upper left place is √5 from the lower right one.
  auto far = torch::eye(7);
  far[1] = 0, far[1][6] = 1;
  EXPECT_NEAR(distance(far), std::sqrt(5.0) / 6, 1e-12);
  auto blind = torch::zeros({7, 7});
  blind.select(1, 0).fill_(1);
  EXPECT_DOUBLE_EQ(distance(blind), 0) << "it looks at no place";
}

TEST(ImageAttention, EachKindHasItsNumbers) {
  const auto grid = PatchGrid{.rows = 2, .columns = 2, .n_before = 0, .patch_size = 1};
  const auto weights = torch::full({4, 4}, 0.25);
  for (const auto kind : {AttentionKind::encoder, AttentionKind::decoder, AttentionKind::cross}) {
    const auto head = head_statistics(one_head(kind, weights, grid)).front();
    EXPECT_NEAR(head.entropy.value(), std::log(4.0), 1e-6);
    EXPECT_EQ(head.distance.has_value(), kind == AttentionKind::encoder);
    EXPECT_EQ(head.itself.has_value(), kind != AttentionKind::cross);
    EXPECT_FALSE(head.first || head.previous || head.alignment_error);
  }
}

}  // namespace
}  // namespace zoo
