// DETR: what it reads and hides, and what it costs.

#include "models/families/detr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "models/families/model_cost.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr ModelPurpose kDetection{
    .head = HeadKind::detection, .n_classes = 3, .image = {.channels = 1, .height = 32, .width = 32}};

ModelConfig small_detr(NormPlacement placement = NormPlacement::post,
                       ChannelNormKind norm = ChannelNormKind::group,
                       Position position = Position::sinusoidal) {
  auto config = small_config(Architecture::encoder, position);
  config.architecture = Selection("detr", DetrConfig{.n_queries = 5,
                                                     .max_places = 6,
                                                     .backbone = {.depth = ResnetDepth::layers_18,
                                                                  .width = 4,
                                                                  .stem_stride = StemStride::one,
                                                                  .norm = norm}});
  config.norm_placement = placement;
  config.n_decoder_layers = 3;
  return config;
}

/// Two pictures in a batch of 32 × 48 pixels: the second one has 24 × 30.
Batch padded_pictures() {
  auto images = torch::randn({2, 1, 32, 48});
  images[1].slice(1, 24).zero_();
  images[1].slice(2, 30).zero_();
  Batch batch;
  batch.fields = {{"images", images}, {"image_sizes", torch::tensor({{32, 48}, {24, 30}}, torch::kInt64)}};
  return batch;
}

TEST(Detr, HasOutputsOfEveryDecoderLayer) {
  for (const auto placement : {NormPlacement::post, NormPlacement::pre}) {
    const auto model = random_model(small_detr(placement), kDetection);
    const torch::NoGradGuard no_grad;
    const auto batch = padded_pictures();
    const auto found = model->detecting()->detect(batch);
    EXPECT_EQ(found.logits.sizes(), (std::vector<int64_t>{3, 2, 5, 4}));
    EXPECT_EQ(found.boxes.sizes(), (std::vector<int64_t>{3, 2, 5, 4}));
    EXPECT_GE(found.boxes.min().item<double>(), 0);
    EXPECT_LE(found.boxes.max().item<double>(), 1);
    EXPECT_TRUE(close(model->logits(model->features(batch)), found.logits[-1].flatten(0, 1)));
    EXPECT_EQ(model->hidden_states(batch).sizes(), (std::vector<int64_t>{2, 4 * 6, kWidth}));
    const auto copy = copy_of(model);
    EXPECT_TRUE(torch::equal(copy->detecting()->detect(batch).boxes, found.boxes));
  }
}

// A place counts as padding if its upper left pixel does: of 4 × 6 places, 3 × 4 show the second picture.
// With queries that begin alike, all of them learn to find the same object.
TEST(Detr, QueriesAndLearnedPositionsBeginAsTheAuthorsDo) {
  torch::manual_seed(1);
  auto config = small_detr(NormPlacement::pre, ChannelNormKind::group, Position::learned);
  config.architecture = Selection("detr", DetrConfig{.n_queries = 200, .max_places = 50});
  config.init = Initialization::detr;
  const auto parameters = initialized_model(config, kDetection)->named_parameters();
  EXPECT_NEAR(parameters["queries"].std().item<double>(), 1, 0.05);
  const auto table = parameters["embedder.row_table"];
  EXPECT_NEAR(table.mean().item<double>(), 0.5, 0.05);
  EXPECT_GE(table.min().item<double>(), 0);
  EXPECT_LE(table.max().item<double>(), 1);
}

TEST(Detr, NothingLooksAtPadding) {
  const auto model = random_model(small_detr(), kDetection);
  const torch::NoGradGuard no_grad;
  const auto batch = padded_pictures();
  AttentionMaps maps;
  model->attention_maps(batch, maps);
  auto visible = torch::zeros({4, 6});
  visible.slice(0, 0, 3).slice(1, 0, 4).fill_(1);
  ASSERT_EQ(maps.cross.size(), 3U);
  for (const auto* of_places : {&maps.encoder, &maps.cross}) {
    for (const auto& map : *of_places) {
      const auto weights = map[1].view({map.size(1), map.size(2), 4, 6});
      EXPECT_EQ((weights * (1 - visible)).abs().max().item<double>(), 0);
      EXPECT_TRUE(close(weights.sum({2, 3}), torch::ones({map.size(1), map.size(2)})));
      EXPECT_GT(map[0].amax(std::vector<int64_t>{0, 1}).min().item<double>(), 0);  // every place is seen
    }
  }
  for (const auto& map : maps.decoder) EXPECT_EQ(map.sizes().slice(2), (std::vector<int64_t>{5, 5}));
  const auto grid = model->patch_grid(batch);
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->rows * grid->columns, 24);
  EXPECT_EQ(grid->patch_size, 8);
}

TEST(Detr, PicturesWithoutSizesAreNotPadded) {
  const auto model = random_model(small_detr(), kDetection);
  const torch::NoGradGuard no_grad;
  Batch batch;
  batch.fields = {{"images", torch::randn({2, 1, 32, 48})}};
  const auto without = model->detecting()->detect(batch);
  batch.fields["image_sizes"] = torch::tensor({{32, 48}, {32, 48}}, torch::kInt64);
  EXPECT_TRUE(close(model->detecting()->detect(batch).boxes, without.boxes));
}

TEST(Detr, LearnedPositionsHaveATableForRowsAndOneForColumns) {
  const auto config = small_detr(NormPlacement::post, ChannelNormKind::group, Position::learned);
  const auto model = random_model(config, kDetection);
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(model->detecting()->detect(padded_pictures()).boxes.sizes(),
            (std::vector<int64_t>{3, 2, 5, 4}));  // 4 × 6 places
  Batch batch;
  batch.fields = {{"images", torch::randn({1, 1, 56, 32})}};
  EXPECT_THAT(message_of<DataError>([&] { model->detecting()->detect(batch); }),
              HasSubstr("7 × 4 places is larger than model.architecture.max_places, 6"));
  auto purpose = kDetection;
  purpose.image.width = 56;
  EXPECT_THAT(message_of<ConfigError>([&] { initialized_model(config, purpose); }),
              HasSubstr("max_places: 6 is less than the 4 × 7 places"));
}

TEST(Detr, RecomputedLayersGiveTheSameGradients) {
  const auto model = random_model(small_detr(NormPlacement::pre), kDetection);
  model->train();
  const auto batch = padded_pictures();
  std::vector<torch::Tensor> gradients[2];
  for (const int with : {0, 1}) {
    model->zero_grad();
    model->checkpoint_activations(with == 1 ? ActivationCheckpointing::every_layer
                                            : ActivationCheckpointing::none);
    const auto found = model->detecting()->detect(batch);
    (found.logits.square().sum() + found.boxes.sum()).backward();
    for (const auto& parameter : model->parameters()) gradients[with].push_back(parameter.grad().clone());
  }
  for (size_t i = 0; i < gradients[0].size(); ++i) EXPECT_TRUE(close(gradients[0][i], gradients[1][i]));
}

TEST(Detr, MixesRowsOnlyWithBatchNormInTraining) {
  const auto model = random_model(small_detr(NormPlacement::post, ChannelNormKind::batch), kDetection);
  model->train();
  EXPECT_TRUE(model->mixes_rows());
  model->eval();
  EXPECT_FALSE(model->mixes_rows());
  EXPECT_FALSE(random_model(small_detr(), kDetection)->mixes_rows());
}

TEST(Detr, CostsAreThoseOfTheModel) {
  for (const auto& config : {small_detr(NormPlacement::post), small_detr(NormPlacement::pre),
                             small_detr(NormPlacement::post, ChannelNormKind::group, Position::learned)}) {
    const auto model = initialized_model(config, kDetection);
    int64_t n = 0;
    for (const auto& parameter : model->parameters()) n += parameter.numel();
    const auto cost = model_cost(config, kDetection, 16);
    EXPECT_EQ(cost.parameters, n);
    for (const auto& layer : cost.layers) {
      if (layer.parameters == 0) continue;
      bool found = false;
      for (const auto& parameter : model->named_parameters())
        found = found || parameter.key().starts_with(layer.name);
      EXPECT_TRUE(found) << layer.name;
    }
  }
}

// The classes and boxes of every decoder layer are predicted, for the loss of each layer.
TEST(Detr, HeadsCostWhatTheyCostForEveryDecoderLayer) {
  auto config = small_detr();
  config.n_decoder_layers = 3;
  constexpr double D = kWidth, Q = 5, L = 3, B = 2;
  const double heads = 2 * B * Q * L * (D * (kDetection.n_classes + 1) + D * D + D * D + D * 4);
  double rest = 0;  // all but the heads, of one picture
  const auto cost = unit_cost(config, kDetection, 0);
  double of_heads = 0;
  for (const auto& layer : cost.layers) {
    const bool is_head = layer.name.starts_with("head") || layer.name.starts_with("box_head");
    (is_head ? of_heads : rest) += layer.flops_per_token;
  }
  EXPECT_DOUBLE_EQ(cost.flops_per_token, of_heads + rest);
  const PassShape shape{.batch_size = 2, .fields = {{"images", {2, 1, 32, 32}}}};
  EXPECT_DOUBLE_EQ(forward_flops(config, kDetection, shape), 2 * rest + heads);
}

}  // namespace
}  // namespace zoo::testing
