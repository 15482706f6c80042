#include "checkpoints/weight_average.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "models/embedders/resnet.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::shared_ptr<Model> model_of(uint64_t seed, int64_t d_ff = 40) {
  auto config = small_config(Architecture::decoder);
  config.d_ff = d_ff;
  return random_model(config, purpose_of(config.architecture), seed);
}

void set_all(Model& model, double value) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.fill_(value);
}

TEST(MovingAverage, IsTheSumOfItsFormula) {
  const auto model = model_of(1);
  set_all(*model, 4);
  constexpr double decay = 0.3;
  MovingAverage average(*model, decay);
  double expected = 4;
  for (int t = 0; t < 12; ++t) {
    const double value = std::sin(t);
    set_all(*model, value);
    average.update();
    const double part = std::min(decay, (1.0 + t) / (10.0 + t));  // 0.1, 0.18, 0.25, then decay
    expected = part * expected + (1 - part) * value;
    for (const auto& [name, tensor] : average.weights()) {
      EXPECT_NEAR(tensor.min().item<double>(), expected, 1e-6) << name << " at " << t;
      EXPECT_NEAR(tensor.max().item<double>(), expected, 1e-6) << name << " at " << t;
    }
  }
  EXPECT_EQ(average.weights().size(), model->parameters().size());
}

TEST(MovingAverage, GoesOnFromItsState) {
  const auto model = model_of(1);
  MovingAverage average(*model, 0.99);
  for (int t = 0; t < 3; ++t) {
    set_all(*model, t);
    average.update();
  }
  MovingAverage restored(*model, 0.99);
  const auto state = average.state();
  for (const auto& [name, tensor] : restored.state()) torch::Tensor(tensor).copy_(state.at(name));
  set_all(*model, 7);
  average.update();
  restored.update();
  for (const auto& [name, tensor] : average.state()) {
    EXPECT_TRUE(torch::equal(tensor, restored.state().at(name))) << name;
  }
}

TEST(SubstituteWeights, AreInTheModelWhileTheObjectLives) {
  const auto model = model_of(1), other = model_of(2);
  const torch::NoGradGuard no_grad;
  const auto batch = small_batch(Architecture::decoder, {tokens(2, 6), {}});
  const auto own = model->features(batch), others = other->features(batch);
  std::vector<torch::Tensor> before;
  for (const auto& parameter : model->parameters()) before.push_back(parameter.detach().clone());
  {
    const SubstituteWeights substitute(*model, named_tensors(*other));
    EXPECT_TRUE(torch::equal(model->features(batch), others));
    for (const auto& [name, tensor] : named_tensors(*other)) {
      EXPECT_TRUE(torch::equal(named_tensors(*model).at(name), tensor)) << name;
    }
  }
  EXPECT_TRUE(torch::equal(model->features(batch), own));
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(torch::equal(model->parameters()[i], before[i]));
}

// Gradients from before and after, and references to the parameters, stay valid.
TEST(SubstituteWeights, LeaveTrainingAsItWas) {
  const auto model = model_of(1), undisturbed = model_of(1), other = model_of(2);
  const auto batch = small_batch(Architecture::decoder, {tokens(2, 6), {}});
  const auto train = [&](Model& m, bool interrupted) {
    const auto parameters = m.parameters();
    for (int step = 0; step < 3; ++step) {
      const auto loss = m.features(batch).pow(2).sum();
      if (interrupted) const SubstituteWeights substitute(m, named_tensors(*other));
      loss.backward();
      if (interrupted) const SubstituteWeights substitute(m, named_tensors(*other));
      const torch::NoGradGuard no_grad;
      for (auto parameter : parameters) {
        if (!parameter.grad().defined()) continue;
        parameter.sub_(parameter.grad(), 1e-4);
        parameter.mutable_grad().reset();
      }
    }
  };
  train(*model, true);
  train(*undisturbed, false);
  for (const auto& [name, tensor] : named_tensors(*undisturbed)) {
    EXPECT_TRUE(torch::equal(named_tensors(*model).at(name), tensor)) << name;
  }
}

// The running means of batch norm belong to the weights with which they were measured.
TEST(MovingAverage, IncludesRunningMeans) {
  ModelConfig config;
  config.architecture = Selection("resnet", ResnetConfig{.depth = ResnetDepth::layers_18, .width = 2});
  const auto model = initialized_model(
      config,
      {.head = HeadKind::classification, .n_classes = 2, .image = {.channels = 1, .height = 8, .width = 8}});
  const auto buffer = model->buffers().front();
  MovingAverage average(*model, 0.9);
  buffer.fill_(1);
  average.update();  // 0.1 of the first value, which is 0
  {
    const SubstituteWeights other(*model, average.weights());
    EXPECT_TRUE(torch::allclose(buffer, torch::full_like(buffer, 0.9)));
  }
  EXPECT_TRUE(torch::equal(buffer, torch::ones_like(buffer)));
}

class MeanWeights : public ::testing::Test {
 protected:
  fs::path saved(uint64_t seed, int64_t d_ff = 40) const {
    const fs::path file = dir_ / std::to_string(seed);
    save_weights(file, *model_of(seed, d_ff));
    return file;
  }
  TempDir dir_;
};

TEST_F(MeanWeights, IsTheMeanOfAll) {
  const auto model = model_of(1);
  const auto means = mean_weights(*model, {saved(2), saved(3)});
  const auto a = named_tensors(*model), b = named_tensors(*model_of(2)), c = named_tensors(*model_of(3));
  ASSERT_EQ(means.size(), a.size());
  for (const auto& [name, mean] : means) {
    const auto expected = (a.at(name).to(torch::kDouble) + b.at(name) + c.at(name)) / 3;
    EXPECT_LT((mean - expected).abs().max().item<double>(), 1e-6) << name;
    EXPECT_TRUE(torch::equal(a.at(name), named_tensors(*model_of(1)).at(name))) << "the model has changed";
  }
}

TEST_F(MeanWeights, OfDifferentArchitecturesIsRefused) {
  const auto message =
      message_of<CheckpointError>([&] { mean_weights(*model_of(1), {saved(2), saved(3, /*d_ff=*/48)}); });
  EXPECT_THAT(message, AllOf(HasSubstr("another architecture"), HasSubstr("feed_forward")));
}

}  // namespace
}  // namespace zoo::testing
