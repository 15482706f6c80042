#include "training/optimizer.h"

#include <functional>
#include <memory>

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

// A module with tensors of one, two and three dimensions, and a gradient that changes from step to step.
struct Toy : torch::nn::Module {
  Toy() {
    torch::manual_seed(3);
    matrix = register_parameter("matrix", torch::randn({7, 5}));
    cube = register_parameter("cube", torch::randn({2, 3, 4}));
    vector = register_parameter("vector", torch::randn({5}));
    unused = register_parameter("unused", torch::randn({3, 3}));
  }
  torch::Tensor loss(int64_t step) {
    const double phase = 0.3 * static_cast<double>(step);
    return (matrix.matmul(vector) - phase).pow(2).sum() + (cube * (1 + phase)).sin().sum();
  }
  torch::Tensor matrix, cube, vector, unused;
};

using MakeReference = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const std::vector<torch::Tensor>& parameters, double weight_decay)>;

/// Ten steps of ours and of LibTorch's from the same start.
void expect_equal(const OptimizerConfig& config, const MakeReference& make) {
  const auto ours = std::make_shared<Toy>(), theirs = std::make_shared<Toy>();
  Optimizer optimizer(config, ours->named_parameters());
  const auto decayed = make({theirs->matrix, theirs->cube}, config.weight_decay);
  const auto spared = make({theirs->vector}, config.decay_all ? config.weight_decay : 0.0);
  const auto before = ours->unused.detach().clone();
  for (int64_t step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    ours->loss(step).backward();
    optimizer.step(config.lr);
    decayed->zero_grad();
    spared->zero_grad();
    theirs->loss(step).backward();
    decayed->step();
    spared->step();
    for (const auto& item : ours->named_parameters()) {
      const auto& expected = theirs->named_parameters()[item.key()];
      EXPECT_TRUE(torch::allclose(item.value(), expected, 1e-5, 1e-6))
          << item.key() << " after step " << step;
    }
  }
  EXPECT_FALSE(torch::allclose(ours->matrix, std::make_shared<Toy>()->matrix, 1e-3));  // something did move
  EXPECT_TRUE(torch::equal(ours->unused, before));
}

TEST(Optimizer, AdamWIsThatOfLibTorch) {
  for (const bool decay_all : {false, true}) {
    const OptimizerConfig config{
        .lr = 0.02, .betas = {0.9, 0.98}, .weight_decay = 0.3, .decay_all = decay_all};
    expect_equal(config, [&](const auto& parameters, double decay) {
      return std::make_unique<torch::optim::AdamW>(
          parameters,
          torch::optim::AdamWOptions(config.lr).betas({0.9, 0.98}).eps(config.eps).weight_decay(decay));
    });
  }
}

TEST(Optimizer, AdamIsThatOfLibTorch) {
  const OptimizerConfig config{
      .type = OptimizerKind::adam, .lr = 0.02, .betas = {0.8, 0.95}, .eps = 1e-6, .weight_decay = 0.3};
  expect_equal(config, [&](const auto& parameters, double decay) {
    return std::make_unique<torch::optim::Adam>(
        parameters,
        torch::optim::AdamOptions(config.lr).betas({0.8, 0.95}).eps(config.eps).weight_decay(decay));
  });
}

TEST(Optimizer, SgdIsThatOfLibTorch) {
  for (const double momentum : {0.0, 0.9}) {
    const OptimizerConfig config{
        .type = OptimizerKind::sgd, .lr = 0.003, .weight_decay = 0.1, .momentum = momentum};
    expect_equal(config, [&](const auto& parameters, double decay) {
      return std::make_unique<torch::optim::SGD>(
          parameters, torch::optim::SGDOptions(config.lr).momentum(momentum).weight_decay(decay));
    });
  }
}

TEST(Optimizer, StateIsNamedAfterParametersAndComplete) {
  const auto toy = std::make_shared<Toy>(), copy = std::make_shared<Toy>();
  Optimizer optimizer({}, toy->named_parameters()), restored({}, copy->named_parameters());
  const auto take_step = [](Toy& module, Optimizer& with, int64_t step) {
    with.zero_grad();
    module.loss(step).backward();
    with.step(0.01);
  };
  for (int64_t step = 0; step < 3; ++step) take_step(*toy, optimizer, step);
  const auto state = optimizer.state();
  EXPECT_EQ(state.size(), 4 * 3);
  EXPECT_EQ(state.at("matrix.step").item<float>(), 3);
  EXPECT_EQ(state.at("unused.step").item<float>(), 0);
  EXPECT_EQ(state.at("cube.exp_avg").sizes(), toy->cube.sizes());

  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : restored.state()) torch::Tensor(tensor).copy_(state.at(name));
  for (const auto& item : copy->named_parameters()) item.value().copy_(toy->named_parameters()[item.key()]);
  torch::AutoGradMode with_grad(true);
  take_step(*toy, optimizer, 3);
  take_step(*copy, restored, 3);
  EXPECT_TRUE(torch::equal(toy->matrix, copy->matrix));
}

TEST(ClipGradNorm, IsThatOfTorch) {
  for (const double limit : {0.5, 1e6}) {
    const auto ours = std::make_shared<Toy>(), theirs = std::make_shared<Toy>();
    ours->loss(1).backward();
    theirs->loss(1).backward();
    Optimizer optimizer({}, ours->named_parameters());
    const auto norm = clip_grad_norm(optimizer.gradients(), limit);
    const double expected = torch::nn::utils::clip_grad_norm_(theirs->parameters(), limit);
    EXPECT_NEAR(norm.item<double>(), expected, 1e-4);
    EXPECT_TRUE(torch::allclose(ours->matrix.grad(), theirs->matrix.grad(), 1e-5, 1e-7));
    EXPECT_TRUE(torch::allclose(ours->cube.grad(), theirs->cube.grad(), 1e-5, 1e-7));
  }
}

TEST(ClipGradNorm, ZeroMeasuresOnly) {
  const auto toy = std::make_shared<Toy>();
  toy->loss(1).backward();
  const auto before = toy->matrix.grad().clone();
  EXPECT_GT(clip_grad_norm({toy->matrix.grad()}, 0).item<double>(), 1.0);
  EXPECT_TRUE(torch::equal(toy->matrix.grad(), before));
}

}  // namespace
}  // namespace zoo
