// Residual networks: their sizes, their norms, and what they cost.

#include "models/embedders/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/families/model_cost.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::array kDepths{ResnetDepth::layers_18, ResnetDepth::layers_34, ResnetDepth::layers_50};
constexpr std::array kStems{StemStride::four, StemStride::two, StemStride::one};
constexpr std::array kNorms{ChannelNormKind::batch, ChannelNormKind::frozen_batch, ChannelNormKind::group};

constexpr ModelPurpose kOfImages{
    .head = HeadKind::classification, .n_classes = 5, .image = {.channels = 3, .height = 16, .width = 24}};

ModelConfig small_resnet(const ResnetConfig& resnet) {
  ModelConfig config;
  config.architecture = Selection("resnet", resnet);
  config.dropout = 0;
  return config;
}

Batch images_batch(const torch::Tensor& images) {
  Batch batch;
  batch.fields = {{"images", images}};
  return batch;
}

/// Calls `check` with every network of width 6.
template <class Check>
void for_each_resnet(const Check& check) {
  for (const auto depth : kDepths) {
    for (const auto stem_stride : kStems) {
      for (const auto norm : kNorms) {
        const ResnetConfig config{.depth = depth,
                                  .width = 6,
                                  .stem_stride = stem_stride,
                                  .norm = norm,
                                  .dilation = norm == ChannelNormKind::group};
        SCOPED_TRACE(to_text(Selection("resnet", config)));
        check(config);
      }
    }
  }
}

TEST(Resnet, OutputHasTheShapeThatIsForetold) {
  const torch::NoGradGuard no_grad;
  for_each_resnet([](const ResnetConfig& config) {
    const ResnetOptions options(3, config);
    Resnet network(options);
    for (const auto& [height, width] : {std::pair{32, 64}, {1, 7}, {45, 30}}) {
      const auto shape = resnet_output(options, height, width);
      EXPECT_EQ(network(torch::randn({2, 3, height, width})).sizes(),
                (std::vector<int64_t>{2, shape.channels, shape.height, shape.width}));
      EXPECT_EQ(network->n_outputs(), shape.channels);
    }
    EXPECT_EQ(resnet_output(options, 96, 64).height, 96 / options.stride());
  });
  EXPECT_EQ(ResnetOptions(3, {}).n_outputs(), 2048);
  EXPECT_THROW(Resnet(ResnetOptions(3, {}))(torch::zeros({1, 1, 32, 32})), c10::Error);
}

TEST(Resnet, CostsAreThoseOfTheModel) {
  for_each_resnet([](const ResnetConfig& config) {
    const auto model = initialized_model(small_resnet(config), kOfImages);
    int64_t n = 0;
    for (const auto& parameter : model->parameters()) n += parameter.numel();
    const auto cost = model_cost(small_resnet(config), kOfImages, 1);
    EXPECT_EQ(cost.parameters, n);
    EXPECT_DOUBLE_EQ(forward_flops(small_resnet(config), kOfImages,
                                   pass_shape(images_batch(torch::zeros({3, 3, 16, 24})))),
                     3 * cost.flops_per_token);
  });
}

// Kaiming's normal values with fan-out stay, whatever model.init says.
TEST(Resnet, InitialisationLeavesConvolutionsAlone) {
  for (const auto init : {Initialization::normal, Initialization::xavier_uniform, Initialization::t5}) {
    auto config = small_resnet({.depth = ResnetDepth::layers_18, .width = 32});
    config.init = init;
    torch::manual_seed(1);
    const auto model = initialized_model(config, kOfImages);
    for (const auto& item : model->named_parameters()) {
      const auto& weight = item.value();
      if (weight.dim() != 4) continue;
      const auto fan_out = static_cast<double>(weight.size(0) * weight.size(2) * weight.size(3));
      EXPECT_NEAR(weight.std().item<double>(), std::sqrt(2 / fan_out), 0.05 * std::sqrt(2 / fan_out))
          << item.key();
    }
  }
}

TEST(Resnet, OnlyBatchNormInTrainingMixesRows) {
  const auto images = torch::randn({3, 3, 16, 24});
  for (const auto norm : kNorms) {
    const auto model = initialized_model(small_resnet({.width = 6, .norm = norm}), kOfImages);
    for (const bool training : {true, false}) {
      model->train(training);
      const torch::NoGradGuard no_grad;
      const auto of_all = model->features(images_batch(images)).narrow(0, 0, 2);
      const auto of_some = model->features(images_batch(images.narrow(0, 0, 2)));
      EXPECT_EQ(model->mixes_rows(), training && norm == ChannelNormKind::batch);
      EXPECT_EQ(close(of_all, of_some), !model->mixes_rows());
    }
  }
}

TEST(Resnet, FrozenNormsHaveNoParametersAndStay) {
  const auto model =
      initialized_model(small_resnet({.width = 6, .norm = ChannelNormKind::frozen_batch}), kOfImages);
  model->train();
  for (const auto& item : model->named_parameters()) EXPECT_EQ(item.key().find("norm"), std::string::npos);
  const auto before = model->named_buffers();
  std::vector<torch::Tensor> copies;
  for (const auto& item : before) copies.push_back(item.value().clone());
  model->features(images_batch(torch::randn({3, 3, 16, 24}))).sum().backward();
  for (size_t i = 0; i < copies.size(); ++i) EXPECT_TRUE(torch::equal(before[i].value(), copies[i]));
}

TEST(Resnet, GroupsDivideTheChannels) {
  const auto groups = [](int64_t n_channels) { return ChannelNormOptions(n_channels).n_groups(); };
  EXPECT_EQ(groups(64), 32);
  EXPECT_EQ(groups(48), 24);
  EXPECT_EQ(groups(6), 6);
  EXPECT_EQ(groups(37), 1);
}

TEST(Resnet, ClonesHaveTheirOwnRunningMeans) {
  const auto model = initialized_model(small_resnet({.width = 6}), kOfImages);
  model->train();
  model->features(images_batch(torch::randn({3, 3, 16, 24})));
  const auto copy = copy_of(model);
  for (const auto& item : model->named_buffers())
    EXPECT_TRUE(torch::equal(item.value(), copy->named_buffers()[item.key()])) << item.key();
  const auto before = model->buffers().front().clone();
  copy->features(images_batch(torch::randn({3, 3, 16, 24})));
  EXPECT_TRUE(torch::equal(model->buffers().front(), before));
  EXPECT_FALSE(torch::equal(copy->buffers().front(), before));
}

TEST(Resnet, BadInputsGetOneLine) {
  const auto model = initialized_model(small_resnet({.width = 6}), kOfImages);
  const auto problem = [&] {
    return message_of<ConfigError>([&] { model->features(images_batch(torch::zeros({1, 3, 8, 8}))); });
  };
  EXPECT_THAT(problem(), HasSubstr("norm: batch in training needs more than one number of a channel"));
  EXPECT_EQ(why_no_maps(small_resnet({})), "the model has no attention maps: a resnet has no attention");
}

}  // namespace
}  // namespace zoo::testing
