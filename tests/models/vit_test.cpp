// Vision transformers: what they read, and what they cost.

#include "models/families/vit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "models/families/model_cost.h"
#include "models/families/model_keys.h"
#include "models/stack.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

ModelConfig small_vit(const VitConfig& vit = {.patch_size = 4}, Position position = Position::learned) {
  auto config = small_config(Architecture::encoder, position);
  config.architecture = Selection("vit", vit);
  return config;
}

constexpr ModelPurpose kPurpose{
    .head = HeadKind::classification, .n_classes = 5, .image = {.channels = 3, .height = 8, .width = 12}};

Batch batch_of(const torch::Tensor& images) {
  Batch batch;
  batch.fields = {{"images", images}};
  return batch;
}

torch::Tensor logits(Model& model, const torch::Tensor& images) {
  const torch::NoGradGuard no_grad;
  return model.logits(model.features(batch_of(images)));
}

TEST(Vit, PatchesAreCutRowByRow) {
  // Pixel (row, column) of channel c is 100·c + 10·row + column.
  const auto images = torch::arange(2).view({1, 2, 1, 1}) * 100 + torch::arange(5).view({1, 1, 5, 1}) * 10 +
                      torch::arange(4).view({1, 1, 1, 4});
  const auto patches = patches_of(images, 2);
  EXPECT_EQ(patches.sizes(), (std::vector<int64_t>{1, 4, 8}));  // the last row of pixels fills no patch
  EXPECT_TRUE(torch::equal(patches[0][1], torch::tensor({2, 3, 12, 13, 102, 103, 112, 113})));
  EXPECT_TRUE(torch::equal(patches[0][2], torch::tensor({20, 21, 30, 31, 120, 121, 130, 131})));
}

TEST(Vit, SaysWhichPlacesItMakesOfAnImage) {
  for (const auto& [vit, n_before] :
       {std::pair(VitConfig{.patch_size = 4}, 1),
        {VitConfig{.patch_size = 4, .pooling = ImagePooling::mean}, 0},
        {VitConfig{.patch_size = 4, .pooling = ImagePooling::class_and_mean}, 1},
        {VitConfig{.patch_size = 4, .distillation_token = true}, 2}}) {
    const auto model = random_model(small_vit(vit), kPurpose);
    const auto batch = batch_of(torch::randn({1, 3, 11, 16}));  // the last three rows of pixels fill no patch
    const auto grid = model->patch_grid(batch);
    ASSERT_TRUE(grid);
    EXPECT_EQ(grid->rows, 2);
    EXPECT_EQ(grid->columns, 4);
    EXPECT_EQ(grid->n_before, n_before);
    EXPECT_EQ(grid->patch_size, 4);
    AttentionMaps maps;
    model->attention_maps(batch, maps);
    EXPECT_EQ(maps.encoder.at(0).size(3), grid->n_before + grid->rows * grid->columns);
  }
}

TEST(Vit, WithoutPositionsTheOrderOfPatchesDoesNotMatter) {
  const auto images = torch::randn({2, 3, 8, 12});
  const auto turned = images.roll(4, 3).roll(4, 2);
  for (const auto pooling : {ImagePooling::class_token, ImagePooling::mean}) {
    const auto vit = VitConfig{.patch_size = 4, .pooling = pooling};
    for (const auto position : {Position::none, Position::learned, Position::sinusoidal}) {
      const auto model = random_model(small_vit(vit, position), kPurpose);
      EXPECT_EQ(close(logits(*model, images), logits(*model, turned)), position == Position::none);
    }
  }
}

// What a class is predicted from is part of what a model without a head gives.
TEST(Vit, WithoutAHeadGivesTheClassToken) {
  auto purpose = kPurpose;
  purpose.head = HeadKind::none;
  const auto images = torch::randn({2, 3, 8, 12});
  for (const auto pooling : {ImagePooling::class_and_mean, ImagePooling::class_and_distillation}) {
    auto config = small_vit({.patch_size = 4, .pooling = pooling, .distillation_token = true});
    config.pooler = false;
    const auto model = random_model(config, purpose);
    const torch::NoGradGuard no_grad;
    const auto hidden = model->hidden_states(batch_of(images));
    EXPECT_EQ(hidden.size(1), 2 + 6);
    EXPECT_TRUE(torch::equal(logits(*model, images), hidden.select(1, 0)));
    EXPECT_EQ(model->n_outputs(), config.d_model);
  }
}

TEST(Vit, ReadsImagesOfOtherSizes) {
  for (const auto& [position, stem] : {std::pair{Position::none, VitStem::patches},
                                       {Position::learned, VitStem::patches},
                                       {Position::sinusoidal, VitStem::patches},
                                       {Position::learned, VitStem::convolutions}}) {
    const auto model = random_model(small_vit({.patch_size = 4, .stem = stem}, position), kPurpose);
    for (const auto& [height, width] : {std::pair{4, 4}, {8, 12}, {15, 9}, {16, 24}})
      EXPECT_EQ(logits(*model, torch::randn({2, 3, height, width})).sizes(), (std::vector<int64_t>{2, 5}));
    EXPECT_THROW(logits(*model, torch::randn({2, 3, 3, 8})), c10::Error);
    EXPECT_THROW(logits(*model, torch::randn({2, 1, 8, 8})), c10::Error);
  }
}

/// BEiT: scores by the distance of patches, of each layer or of all layers.
ModelConfig beit(bool by_layer) {
  auto config =
      small_vit({.patch_size = 4, .pooling = ImagePooling::patch_mean, .pool_norm = true}, Position::none);
  config.score_position = Position::grid;
  config.score_bias_by_layer = by_layer;
  config.final_norm = false;
  return config;
}

// 8 × 12 pixels are 2 × 3 patches, in whose order the model's table of distances is.
TEST(Vit, WithScoresByDistanceReadsImagesOfOneSize) {
  for (const bool by_layer : {false, true}) {
    const auto config = beit(by_layer);
    const auto model = random_model(config, kPurpose);
    const auto images = torch::randn({2, 3, 8, 12});
    EXPECT_FALSE(close(logits(*model, images), logits(*model, images.roll(4, 3)))) << "the order counts";
    const auto other = torch::randn({2, 3, 12, 12});
    EXPECT_THAT(message_of<DataError>([&] { logits(*model, other); }), HasSubstr("this model reads 12 x 8"));
    int64_t tables = 0;
    for (const auto& item : model->named_parameters()) tables += item.key().ends_with("numbers.weight");
    EXPECT_EQ(tables, by_layer ? config.n_layers : 1);
  }
}

TEST(Vit, CostsAreThoseOfTheModel) {
  std::vector<ModelConfig> configs = {small_vit(), beit(true), beit(false),
                                      small_vit({.patch_size = 2, .pooling = ImagePooling::mean}),
                                      small_vit({.patch_size = 4}, Position::sinusoidal)};
  configs.push_back(small_vit());
  configs.back().layer_scale = 1e-4;
  configs.push_back(small_vit({.patch_size = 4, .pooling = ImagePooling::class_and_mean}));
  configs.push_back(small_vit({.patch_size = 4, .distillation_token = true}));
  configs.push_back(small_vit(
      {.patch_size = 4, .pooling = ImagePooling::class_and_distillation, .distillation_token = true}));
  configs.push_back(small_vit({.patch_size = 4, .stem = VitStem::convolutions}));
  configs.push_back(small_vit({.patch_size = 4, .stem = VitStem::convolutions, .stem_blocks = 2}));
  configs.push_back(small_vit({.patch_size = 4,
                               .stem = VitStem::convolutions,
                               .stem_blocks = 1,
                               .stem_norm = ChannelNormKind::batch}));
  for (const auto& config : configs) {
    const auto model = initialized_model(config, kPurpose);
    int64_t n = 0;
    for (const auto& parameter : model->parameters()) n += parameter.numel();
    const int64_t length = input_length(config, kPurpose).value();
    EXPECT_EQ(length, model->hidden_states(batch_of(torch::randn({1, 3, 8, 12}))).size(1));
    EXPECT_EQ(model_cost(config, kPurpose, length).parameters, n);
    const double of_pixels =
        forward_flops(config, kPurpose, pass_shape(batch_of(torch::zeros({3, 3, 8, 12}))));
    EXPECT_DOUBLE_EQ(of_pixels,
                     3 * model_cost(config, kPurpose, length).flops_per_token * static_cast<double>(length));
  }
}

TEST(Vit, BadConfigurationsGetOneLine) {
  const auto problem = [](const ModelConfig& config) {
    return message_of<ConfigError>([&] { initialized_model(config, kPurpose); });
  };
  EXPECT_THAT(problem(small_vit({.patch_size = 4}, Position::rotary)),
              HasSubstr("model.position: of a vit must be learned, sinusoidal, grid or none, not rotary"));
  auto mixer = small_vit({.patch_size = 4, .pooling = ImagePooling::mean}, Position::none);
  ConfigFile::parse("attention: {type: mlp, length: 7}", "test").read(mixer);
  EXPECT_THAT(problem(mixer), HasSubstr("model.attention: mlp is for 7 tokens, but an image has 6"));
  EXPECT_THAT(problem(small_vit({.patch_size = 16, .image_size = 8})),
              HasSubstr("model.architecture: has patches of 16, larger than images of 8"));
  EXPECT_THAT(problem(small_vit({.patch_size = 16})),
              HasSubstr("model.architecture: has patches of 16, larger than images of 8"));
  EXPECT_THAT(problem(small_vit({.patch_size = 3, .stem = VitStem::convolutions})),
              HasSubstr("patch_size must be a power of two, and d_model a multiple of its half"));
  EXPECT_THAT(problem(small_vit({.patch_size = 1, .stem = VitStem::convolutions})),
              HasSubstr("patch_size must be a power of two"));
  EXPECT_THAT(
      problem(small_vit({.patch_size = 4, .pooling = ImagePooling::mean, .distillation_token = true})),
      HasSubstr("model.architecture: has a distillation_token without a class token"));
  EXPECT_THAT(problem(small_vit({.patch_size = 4, .pooling = ImagePooling::class_and_distillation})),
              HasSubstr("has `pooling: class_and_distillation` without `distillation_token: true`"));
  EXPECT_THAT(problem(small_vit({.patch_size = 4, .stem_blocks = 1})),
              HasSubstr("model.architecture: has stem_blocks without `stem: convolutions`"));
}

// A row either keeps the sub-layer's output, scaled up, or has none.
TEST(StochasticDepth, LeavesOutSubLayersOfWholeRows) {
  auto residual = Residual(ResidualOptions(NormOptions(4), {"a"}).stochastic_depth(0.75));
  const auto x = torch::zeros({400, 3, 4});
  const auto y = residual(x, {[](const torch::Tensor& h) { return torch::ones_like(h); }});
  const auto of_row = y.flatten(1);
  EXPECT_TRUE(torch::equal(of_row, of_row.select(1, 0).unsqueeze(1).expand_as(of_row)));
  const double kept = (y > 0).to(torch::kFloat).mean().item<double>();
  EXPECT_NEAR(kept, 0.25, 0.08);
  EXPECT_NEAR(y.max().item<double>(), 4, 1e-6);
  residual->eval();
  EXPECT_TRUE(torch::equal(residual(x, {[](const torch::Tensor& h) { return torch::ones_like(h); }}), x + 1));
}

TEST(StochasticDepth, GrowsFromNothingToTheLastLayer) {
  auto config = small_vit();
  config.n_layers = 3;
  config.stochastic_depth = 0.3;
  for (int64_t layer = 0; layer < 3; ++layer) {
    EXPECT_NEAR(layer_options(config, StackRole::encoder, layer).stochastic_depth(),
                0.15 * static_cast<double>(layer), 1e-12);
  }
}

TEST(LayerScale, ScalesEachNumber) {
  auto residual = Residual(ResidualOptions(NormOptions(4), {"a", "b"}).layer_scale(0.5));
  residual->scales[1].data()[2] = 3;
  const auto one = [](const torch::Tensor& h) { return torch::ones_like(h); };
  const auto y = residual(torch::zeros({1, 1, 4}), {one, one});
  EXPECT_TRUE(torch::allclose(y.flatten(), torch::tensor({1.0, 1.0, 3.5, 1.0}, torch::kFloat)));
}

}  // namespace
}  // namespace zoo::testing
