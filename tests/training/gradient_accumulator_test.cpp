#include "training/gradient_accumulator.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "kernels/cross_entropy.h"
#include "models/embedders/resnet.h"
#include "tasks/token_cross_entropy.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

std::shared_ptr<Model> model_of(Architecture architecture, double dropout = 0) {
  auto config = small_config(architecture);
  config.dropout = config.attention_dropout = config.activation_dropout = dropout;
  torch::manual_seed(5);
  const auto model = initialized_model(config, purpose_of(architecture));
  model->train();
  return model;
}

/// Five rows of unequal length, with targets only at the real positions.
Batch batch_of(Architecture architecture) {
  torch::manual_seed(6);
  Batch batch;
  batch.input = {torch::randint(kVocabulary, {5, 7}), torch::tensor({7, 3, 5, 1, 6}, torch::kLong)};
  auto lengths = batch.input.lengths;
  if (architecture == Architecture::encoder_decoder) {
    lengths = torch::tensor({4, 6, 2, 6, 1}, torch::kLong);
    batch.decoder = {torch::randint(kVocabulary, {5, 6}), lengths};
  }
  const int64_t length = batch.decoder.defined() ? 6 : 7;
  const auto real = torch::arange(length).unsqueeze(0) < lengths.unsqueeze(1);
  batch.positions = real.flatten().nonzero().squeeze(1);
  batch.targets = torch::randint(kVocabulary, {batch.positions.size(0)});
  return batch;
}

struct Outcome {
  double loss;
  std::vector<torch::Tensor> gradients;
};
Outcome outcome(Model& model, const torch::Tensor& loss) {
  Outcome result{.loss = loss.item<double>(), .gradients = {}};
  for (const auto& parameter : model.parameters())
    result.gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : torch::Tensor());
  return result;
}
Outcome accumulated(const std::shared_ptr<Model>& model, const std::vector<Batch>& batches,
                    const GradientOptions& options, const TokenCrossEntropyOptions& loss = {}) {
  model->zero_grad();
  GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>(loss), options);
  return outcome(*model, gradients.differentiate(batches).sum());
}

void expect_equal(const Outcome& a, const Outcome& b, double tolerance) {
  EXPECT_NEAR(a.loss, b.loss, tolerance);
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    ASSERT_EQ(a.gradients[i].defined(), b.gradients[i].defined()) << i;
    if (!a.gradients[i].defined()) continue;
    EXPECT_LE((a.gradients[i] - b.gradients[i]).norm().item<double>(),
              tolerance * (1e-3 + b.gradients[i].norm().item<double>()))
        << i;
  }
}

class EveryFamily : public ::testing::TestWithParam<Architecture> {};

TEST_P(EveryFamily, PartsAndPiecesAddUpToTheWhole) {
  const auto model = model_of(GetParam());
  const auto batch = batch_of(GetParam());
  const auto loss =
      cross_entropy_sum(model->logits(model->features(batch)), batch.targets,
                        {.label_smoothing = 0.1, .weight = 1.0 / static_cast<double>(batch.n_targets())});
  loss.backward();
  const auto whole = outcome(*model, loss);
  for (const int64_t n_parts : {1, 5}) {
    for (const int64_t fewest : {64, 2})
      expect_equal(accumulated(model, {batch}, {.n_parts = n_parts},
                               {.label_smoothing = 0.1, .logits_bytes = 1, .fewest_targets = fewest}),
                   whole, 1e-5);
  }
}

TEST_P(EveryFamily, SeveralBatchesWeighTheirTargetsEqually) {
  const auto model = model_of(GetParam());
  const auto batch = batch_of(GetParam());
  expect_equal(accumulated(model, split_rows(batch, 3), {.n_parts = 1}),
               accumulated(model, {batch}, {.n_parts = 1}), 1e-5);
}

TEST_P(EveryFamily, DropoutDoesNotDependOnWhichThreadIsFirst) {
  const auto model = model_of(GetParam(), 0.3);
  const auto batch = batch_of(GetParam());
  torch::manual_seed(9);
  const auto first = accumulated(model, {batch}, {.n_parts = 5});
  for (int i = 0; i < 5; ++i) {
    torch::manual_seed(9);
    expect_equal(accumulated(model, {batch}, {.n_parts = 5}), first, 0);
  }
  torch::manual_seed(10);
  EXPECT_NE(accumulated(model, {batch}, {.n_parts = 5}).loss, first.loss);
}

TEST_P(EveryFamily, SixteenBitsGiveNearlyTheSameGradients) {
  const auto model = model_of(GetParam());
  const auto batch = batch_of(GetParam());
  const auto exact = accumulated(model, {batch}, {});
  for (const auto precision : {Precision::bf16, Precision::fp16}) {
    const auto rounded = accumulated(model, {batch}, {.precision = precision});
    EXPECT_NE(rounded.loss, exact.loss);
    expect_equal(rounded, exact, 0.03);
  }
}

// What dropout drops of a row depends on the row alone, not on how many rows are with it.
TEST(DropoutOfRows, IsTheSameForAnyPartsSlicesAndBatches) {
  for (const Architecture architecture : kArchitectures) {
    const auto batch = batch_of(architecture);
    for (auto config : varied_configs(architecture)) {
      SCOPED_TRACE(described(config));
      const auto trained = [&](double dropout, const std::vector<Batch>& batches,
                               const GradientOptions& options) {
        config.dropout = config.attention_dropout = config.activation_dropout = dropout;
        torch::manual_seed(5);
        const auto model = initialized_model(config, purpose_of(architecture));
        model->train();
        if (options.micro_batch_size > 0) model->checkpoint_activations(ActivationCheckpointing::every_layer);
        torch::manual_seed(9);
        return accumulated(model, batches, options);
      };
      const auto whole = trained(0.3, {batch}, {.n_parts = 1});
      EXPECT_NE(whole.loss, trained(0, {batch}, {.n_parts = 1}).loss);
      expect_equal(trained(0.3, {batch}, {.n_parts = 5}), whole, 1e-5);
      expect_equal(trained(0.3, {batch}, {.n_parts = 1, .micro_batch_size = 2}), whole, 1e-5);
      expect_equal(trained(0.3, split_rows(batch, 2), {.n_parts = 2}), whole, 1e-5);
    }
  }
}

// The scale is far too large: steps are skipped until it fits, and then the gradients are right.
TEST(LossScaling, RecoversFromOverflow) {
  const auto model = model_of(Architecture::decoder);
  const auto batch = batch_of(Architecture::decoder);
  const auto exact = accumulated(model, {batch}, {});
  GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>(), {.precision = Precision::fp16});
  LossScale scale{.value = 1e9};
  for (int i = 0; i < 40; ++i) {
    model->zero_grad();
    const auto loss = gradients.differentiate({batch}, scale.value);
    EXPECT_NEAR(loss.item<double>(), exact.loss, 0.02);
    bool finite = true;
    for (const auto& parameter : model->parameters())
      finite = finite && parameter.grad().isfinite().all().item<bool>();
    if (finite) break;
    scale.update(Overflow::yes);
  }
  EXPECT_GT(scale.skipped, 5);
  EXPECT_LT(scale.skipped, 40);
  for (auto& parameter : model->parameters()) parameter.mutable_grad() = parameter.grad() / scale.value;
  expect_equal(outcome(*model, torch::tensor(exact.loss, torch::kDouble)), exact, 0.03);
}

INSTANTIATE_TEST_SUITE_P(Models, EveryFamily,
                         ::testing::Values(Architecture::decoder, Architecture::encoder_decoder),
                         [](const auto& instance) {
                           return instance.param == Architecture::decoder ? "Decoder" : "EncoderDecoder";
                         });

/// A residual network with this norm, and six images for it.
std::pair<std::shared_ptr<Model>, Batch> images_for(ChannelNormKind norm) {
  ModelConfig config;
  config.architecture = Selection(
      "resnet",
      ResnetConfig{
          .depth = ResnetDepth::layers_18, .width = 4, .stem_stride = StemStride::one, .norm = norm});
  config.dropout = 0;
  torch::manual_seed(5);
  const auto model = initialized_model(config, {.head = HeadKind::classification,
                                                .n_classes = 3,
                                                .image = {.channels = 1, .height = 16, .width = 16}});
  model->train();
  Batch batch{.targets = torch::randint(3, {6}), .fields = {{"images", torch::randn({6, 1, 16, 16})}}};
  return {model, batch};
}

// Threads share the rows of a batch only if the model does not mix them.
TEST(MixedRows, GoThroughTheModelTogether) {
  at::set_num_threads(2);  // a convolution of one part must not wait for the thread of another
  for (const auto norm : {ChannelNormKind::batch, ChannelNormKind::group}) {
    const auto outcome_of = [&](int64_t n_parts) {
      const auto [model, batch] = images_for(norm);
      return accumulated(model, {batch}, {.n_parts = n_parts});
    };
    // oneDNN convolves half of a batch with another algorithm than the whole, on AVX2 with larger differences
    // in rounding: 1.02e-4 of the gradients of 18 layers.
    expect_equal(outcome_of(1), outcome_of(2), norm == ChannelNormKind::batch ? 1e-9 : 1e-3);
  }
}

TEST(MixedRows, CannotBeSplit) {
  const auto problem = [](ChannelNormKind norm) {
    const auto [model, batch] = images_for(norm);
    return message_of<ConfigError>([&] { accumulated(model, {batch}, {.micro_batch_size = 4}); });
  };
  EXPECT_EQ(problem(ChannelNormKind::group), "no error");
  EXPECT_EQ(
      problem(ChannelNormKind::batch),
      "model.architecture: batch norm is over all rows of a batch, which cannot be split into micro-batches: "
      "let all its rows through the model at once, or choose norm: group or frozen_batch");
}

// Fused optimisers read the memory of a parameter and of its gradient in the same order.
TEST(Convolutions, HaveGradientsWithTheStridesOfTheirWeights) {
  at::set_num_threads(2);
  for (const int64_t n_parts : {1, 2}) {
    const auto [model, batch] = images_for(ChannelNormKind::group);
    accumulated(model, {batch}, {.n_parts = n_parts});
    for (const auto& parameter : model->named_parameters())
      EXPECT_EQ(parameter->grad().strides(), parameter->strides()) << parameter.key();
  }
}

TEST(SplitRows, KeepsEveryTargetWithItsRow) {
  const auto batch = batch_of(Architecture::decoder);
  for (const int64_t n : {1, 2, 5}) {
    const auto parts = split_rows(batch, n);
    ASSERT_EQ(static_cast<int64_t>(parts.size()), n);
    int64_t row = 0;
    std::vector<torch::Tensor> targets, positions;
    for (const auto& part : parts) {
      EXPECT_TRUE(torch::equal(part.input.ids, batch.input.ids.narrow(0, row, part.input.batch_size())));
      targets.push_back(part.targets);
      positions.push_back(part.positions + row * 7);
      row += part.input.batch_size();
    }
    EXPECT_EQ(row, 5);
    EXPECT_TRUE(torch::equal(torch::cat(targets), batch.targets));
    EXPECT_TRUE(torch::equal(torch::cat(positions), batch.positions));
  }
}

TEST(SplitRows, TargetsEverywhereOrOneARow) {
  Batch everywhere;
  everywhere.input.ids = torch::arange(12).view({4, 3});
  everywhere.targets = torch::arange(12);
  Batch classes;
  classes.input = everywhere.input;
  classes.targets = torch::arange(4);
  EXPECT_TRUE(torch::equal(split_rows(everywhere, 2)[1].targets, torch::arange(6, 12)));
  EXPECT_TRUE(torch::equal(split_rows(classes, 2)[1].targets, torch::arange(2, 4)));
}

}  // namespace
}  // namespace zoo::testing
