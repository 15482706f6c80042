#include "optimizers/optimizer.h"

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

// A module with tensors of one, two and three dimensions. Its gradient changes from step to step.
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

/// Compares ten steps of our optimiser and LibTorch's from the same start.
void expect_equal(const OptimizerConfig& config, const MakeReference& make) {
  const auto ours = std::make_shared<Toy>(), theirs = std::make_shared<Toy>();
  Optimizer optimizer(config, parameters_of(*ours));
  const auto decayed = make({theirs->matrix, theirs->cube}, config.weight_decay);
  const auto spared =
      make({theirs->vector}, config.decayed == DecayedParameters::all ? config.weight_decay : 0.0);
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
  EXPECT_FALSE(torch::allclose(ours->matrix, std::make_shared<Toy>()->matrix, 1e-3));  // it has changed
  EXPECT_TRUE(torch::equal(ours->unused, before));
}

TEST(Optimizer, AdamWIsThatOfLibTorch) {
  for (const auto decayed : {DecayedParameters::matrices, DecayedParameters::all}) {
    const OptimizerConfig config{.lr = 0.02, .betas = {0.9, 0.98}, .weight_decay = 0.3, .decayed = decayed};
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

/// Every kind, with the options that give it the largest state.
std::vector<OptimizerConfig> every_kind() {
  std::vector<OptimizerConfig> configs;
  for (size_t i = 0; i < config_names(OptimizerKind()).size(); ++i) {
    configs.push_back({.type = static_cast<OptimizerKind>(i), .lr = 0.01});
  }
  configs[static_cast<size_t>(OptimizerKind::sgd)].momentum = 0.9;
  return configs;
}

/// The parameters, with "matrix" as the weight of a hidden layer.
std::vector<Parameter> with_hidden_matrix(const Toy& toy) {
  auto parameters = parameters_of(toy);
  for (auto& parameter : parameters) {
    if (parameter.name == "matrix") parameter.role = ParameterRole::hidden_matrix;
  }
  return parameters;
}

TEST(Optimizer, StateIsNamedAfterParametersAndComplete) {
  for (const auto& config : every_kind()) {
    SCOPED_TRACE(config.type.type);
    const auto toy = std::make_shared<Toy>(), copy = std::make_shared<Toy>();
    Optimizer optimizer(config, with_hidden_matrix(*toy)), restored(config, with_hidden_matrix(*copy));
    const auto take_step = [](Toy& module, Optimizer& with, int64_t step) {
      with.zero_grad();
      module.loss(step).backward();
      with.step(0.01);
    };
    for (int64_t step = 0; step < 3; ++step) take_step(*toy, optimizer, step);
    {
      const torch::NoGradGuard no_grad;
      const auto state = optimizer.state();
      for (const auto& [name, tensor] : restored.state()) torch::Tensor(tensor).copy_(state.at(name));
      for (const auto& item : copy->named_parameters())
        item.value().copy_(toy->named_parameters()[item.key()]);
    }
    for (int64_t step = 3; step < 5; ++step) {
      take_step(*toy, optimizer, step);
      take_step(*copy, restored, step);
    }
    for (const auto& item : toy->named_parameters()) {
      EXPECT_TRUE(torch::equal(item.value(), copy->named_parameters()[item.key()])) << item.key();
    }
  }
}

TEST(Optimizer, RemembersWhatItsKindNeeds) {
  const auto toy = std::make_shared<Toy>();
  const auto sizes = [&](const OptimizerConfig& config) {
    std::map<std::string, int64_t> values;
    Optimizer optimizer(config, with_hidden_matrix(*toy));
    toy->loss(0).backward();
    optimizer.step(0.01);
    for (const auto& [name, tensor] : optimizer.state()) {
      if (!name.starts_with("unused.")) values[name] = tensor.numel();
      if (name.ends_with(".step")) {
        EXPECT_EQ(tensor.item<float>(), name == "unused.step" ? 0 : 1) << name;
      }
    }
    return values;
  };
  using Sizes = std::map<std::string, int64_t>;
  const Sizes adam = {{"cube.exp_avg", 24},  {"cube.exp_avg_sq", 24},  {"cube.step", 1},
                      {"vector.exp_avg", 5}, {"vector.exp_avg_sq", 5}, {"vector.step", 1}};
  auto expected = adam;
  expected["matrix.exp_avg"] = expected["matrix.exp_avg_sq"] = 35;
  expected["matrix.step"] = 1;
  EXPECT_EQ(sizes({}), expected);
  EXPECT_EQ(sizes({.type = OptimizerKind::adam}), expected);
  EXPECT_EQ(sizes({.type = OptimizerKind::sgd}), Sizes());
  EXPECT_EQ(sizes({.type = OptimizerKind::sgd, .momentum = 0.9}),
            (Sizes{{"matrix.momentum", 35}, {"cube.momentum", 24}, {"vector.momentum", 5}}));
  EXPECT_EQ(sizes({.type = OptimizerKind::lion}),
            (Sizes{{"matrix.exp_avg", 35}, {"cube.exp_avg", 24}, {"vector.exp_avg", 5}}));
  // One value per row and per column of a matrix instead of one per element.
  EXPECT_EQ(sizes({.type = OptimizerKind::adafactor}), (Sizes{{"matrix.row_var", 7},
                                                              {"matrix.col_var", 5},
                                                              {"matrix.step", 1},
                                                              {"cube.row_var", 6},
                                                              {"cube.col_var", 8},
                                                              {"cube.step", 1},
                                                              {"vector.variance", 5},
                                                              {"vector.step", 1}}));
  expected = adam;
  expected["matrix.momentum"] = 35;
  EXPECT_EQ(sizes({.type = OptimizerKind::muon}), expected);
}

TEST(Optimizer, DecaysTheParametersThatItIsToldTo) {
  const std::vector<ParameterRole> roles = {ParameterRole::vector, ParameterRole::embedding,
                                            ParameterRole::hidden_matrix, ParameterRole::other_matrix};
  const std::map<DecayedParameters, std::vector<bool>> expected = {
      {DecayedParameters::matrices, {false, true, true, true}},
      {DecayedParameters::matrices_without_embeddings, {false, false, true, true}},
      {DecayedParameters::all, {true, true, true, true}}};
  for (auto config : every_kind()) {
    for (const auto& [decayed, are_decayed] : expected) {
      SCOPED_TRACE(std::string(config.type.type) + ", " + std::string(name_of(decayed)));
      std::vector<Parameter> parameters;
      for (const auto role : roles) {
        const auto tensor = role == ParameterRole::vector ? torch::ones({4}) : torch::ones({4, 4});
        parameters.push_back({std::to_string(parameters.size()), tensor.requires_grad_(true), role});
        parameters.back().tensor.mutable_grad() = torch::zeros_like(tensor);
      }
      config.weight_decay = 0.5;
      config.decayed = decayed;
      config.muon.adamw_lr = config.lr;
      Optimizer(config, parameters).step(0.1);
      for (size_t i = 0; i < roles.size(); ++i) {
        const double value = parameters[i].tensor.detach().mean().item<double>();
        if (are_decayed[i]) {
          EXPECT_LT(value, 0.96) << i;
        } else {
          EXPECT_EQ(value, 1) << i;
        }
      }
    }
  }
}

// The optimiser updates large models piece by piece.
TEST(Optimizer, LionIsTheSameForManyValues) {
  std::vector<Parameter> parameters;
  for (const int64_t size : {3, 1 << 22, 5, 7, (1 << 22) - 7, 7, 2}) {
    parameters.push_back(
        {std::to_string(parameters.size()), torch::ones({size}).requires_grad_(true), ParameterRole::vector});
    parameters.back().tensor.mutable_grad() = -torch::ones({size});
  }
  Optimizer(OptimizerConfig{.type = OptimizerKind::lion}, parameters).step(0.5);
  for (const auto& parameter : parameters) {
    EXPECT_EQ(parameter.tensor.min().item<float>(), 1.5F) << parameter.name;
    EXPECT_EQ(parameter.tensor.max().item<float>(), 1.5F) << parameter.name;
  }
}

TEST(Optimizer, MuonTakesAConvolutionAsAMatrix) {
  torch::manual_seed(1);
  const auto value = torch::randn({6, 2, 3, 3}), gradient = torch::randn({6, 2, 3, 3});
  const auto step = [&](const torch::Tensor& start, const torch::Tensor& slope) {
    Parameter parameter{"w", start.clone().requires_grad_(true), ParameterRole::hidden_matrix};
    parameter.tensor.mutable_grad() = slope.clone();
    Optimizer({.type = OptimizerKind::muon}, {parameter}).step(0.1);
    return parameter.tensor.detach();
  };
  EXPECT_TRUE(torch::equal(step(value, gradient).flatten(1), step(value.flatten(1), gradient.flatten(1))));
  EXPECT_FALSE(torch::equal(step(value, gradient), value));
}

// Threads take one matrix after the other. None is left out, and none gets the step of another.
TEST(Optimizer, MuonStepsOfManyMatricesAreThoseOfEachAlone) {
  torch::manual_seed(1);
  OptimizerConfig config{.type = OptimizerKind::muon};
  config.muon.precision = MuonPrecision::fp32;
  std::vector<Parameter> together;
  std::vector<torch::Tensor> alone;
  for (int64_t i = 0; i < 40; ++i) {
    const auto start = torch::randn({3 + i % 7, 2 + i % 5}), slope = torch::randn(start.sizes());
    const auto parameter = [&] {
      Parameter result{fmt::format("w{}", i), start.clone().requires_grad_(true),
                       ParameterRole::hidden_matrix};
      result.tensor.mutable_grad() = slope.clone();
      return result;
    };
    together.push_back(parameter());
    const auto single = parameter();
    Optimizer(config, {single}).step(0.1);
    alone.push_back(single.tensor.detach());
  }
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  Optimizer(config, together).step(0.1);
  at::set_num_threads(before);
  for (size_t i = 0; i < alone.size(); ++i)
    EXPECT_TRUE(torch::allclose(together[i].tensor, alone[i], 0, 1e-6));
}

// Queries, keys and values in one parameter learn as in three.
TEST(Optimizer, MuonTakesStackedMatricesOneByOne) {
  torch::manual_seed(1);
  const auto value = torch::randn({10, 6}), gradient = torch::randn({10, 6});
  const auto step = [&](int64_t first, int64_t count, MuonLrScale scale, std::vector<int64_t> stacked = {}) {
    OptimizerConfig config{.type = OptimizerKind::muon};
    config.muon.precision = MuonPrecision::fp32;
    config.muon.lr_scale = scale;
    Parameter parameter{"w", value.narrow(0, first, count).clone().requires_grad_(true),
                        ParameterRole::hidden_matrix, std::move(stacked)};
    parameter.tensor.mutable_grad() = gradient.narrow(0, first, count).clone();
    Optimizer(config, {parameter}).step(0.1);
    return parameter.tensor.detach();
  };
  for (const auto scale : {MuonLrScale::original, MuonLrScale::match_rms_adamw}) {
    const auto separate = torch::cat({step(0, 2, scale), step(2, 7, scale), step(9, 1, scale)});
    EXPECT_TRUE(torch::allclose(step(0, 10, scale, {2, 7, 1}), separate, 0, 1e-6));
    EXPECT_FALSE(torch::allclose(step(0, 10, scale), separate, 0, 1e-3));
  }
}

// In another precision than the reference's the step is nearly the same.
TEST(Optimizer, MuonWorksInFp32Too) {
  torch::manual_seed(1);
  const auto gradient = torch::randn({7, 5});
  const auto step = [&](MuonPrecision precision) {
    OptimizerConfig config{.type = OptimizerKind::muon, .weight_decay = 0};
    config.muon.precision = precision;
    Parameter parameter{"w", torch::zeros({7, 5}).requires_grad_(true), ParameterRole::hidden_matrix};
    parameter.tensor.mutable_grad() = gradient.clone();
    Optimizer(config, {parameter}).step(1.0);
    return parameter.tensor.detach();
  };
  const auto rough = step(MuonPrecision::bf16), fine = step(MuonPrecision::fp32);
  EXPECT_LT((rough - fine).norm().item<double>(), 0.05 * fine.norm().item<double>());
  EXPECT_FALSE(torch::equal(rough, fine));
  // Five nearly orthogonal columns: the iterations leave singular values in this range.
  const auto values = at::linalg_svdvals(fine / std::sqrt(7.0 / 5));
  EXPECT_GT(values.min().item<double>(), 0.6);
  EXPECT_LT(values.max().item<double>(), 1.3);
}

TEST(ClipGradNorm, IsThatOfTorch) {
  for (const double limit : {0.5, 1e6}) {
    const auto ours = std::make_shared<Toy>(), theirs = std::make_shared<Toy>();
    ours->loss(1).backward();
    theirs->loss(1).backward();
    Optimizer optimizer({}, parameters_of(*ours));
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
