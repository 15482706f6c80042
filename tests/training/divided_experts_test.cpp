// Experts that are divided among processes, forked by the test.

#include "training/divided_experts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "layers/activation_checkpointing.h"
#include "optimizers/optimizer.h"
#include "optimizers/parameters.h"
#include "tasks/token_cross_entropy.h"
#include "tests/support/errors.h"
#include "tests/support/in_processes.h"
#include "tests/support/small_models.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

ModelConfig mixture_config(const ExpertsConfig& experts, Architecture architecture = Architecture::decoder) {
  auto config = small_config(architecture);
  config.activation_dropout = 0;
  config.experts = experts;
  return config;
}

/// With experts whose weights decide what the model says.
std::shared_ptr<Model> mixture_in_training(const ModelConfig& config) {
  const auto model = random_model(config, purpose_of(config.architecture), 5);
  model->train();
  return model;
}

Batch rows_for(const FamilySelection& architecture, int64_t n_rows) {
  torch::manual_seed(static_cast<uint64_t>(n_rows));
  return small_batch(architecture, {.ids = tokens(n_rows, 7)});
}

std::shared_ptr<const Objective> token_loss() { return std::make_shared<TokenCrossEntropy>(); }

/// What each gradient of the model is reduced to.
std::vector<int64_t> owners_for(const Model& model, const DividedExperts& divided) {
  std::vector<int64_t> owners;
  for (const auto& parameter : parameters_of(model))
    owners.push_back(divided.has(parameter.name) ? ReducerOptions::kOwn : ReducerOptions::kEvery);
  return owners;
}

torch::Tensor share_of_process(const torch::Tensor& whole, const ProcessGroup& processes) {
  return whole.chunk(processes.size())[static_cast<size_t>(processes.rank())];
}

struct DividedCase {
  std::string name;
  ModelConfig model;
  int64_t n_processes = 2;
  std::vector<int64_t> rows = {6};  // of each batch of the step
  int64_t micro_batch_size = 0;
  ActivationCheckpointing checkpointing = ActivationCheckpointing::none;
  /// Whether tokens choose the first two experts only, so that the last process has nothing to do.
  enum class Favour { none, first_two } favour = Favour::none;
  enum class Embedding { trained, frozen } embedding = Embedding::trained;
};

std::vector<DividedCase> divided_cases() {
  const ExpertsConfig plain{.count = 4}, lossless{.count = 4, .balance = 0};
  auto with_dropout = mixture_config(plain);
  with_dropout.activation_dropout = 0.3;
  auto biased = mixture_config({.count = 4, .balance = 0});
  biased.activation = Activation::gelu;
  const auto both = mixture_config(plain, Architecture::encoder_decoder);
  return {
      {"Two", mixture_config(plain)},
      {"Four", mixture_config(plain), 4},
      {"OneAlone", mixture_config({.count = 4, .active = 1, .shared_d_ff = 8}), 4},
      {"EncoderDecoder", both, 2, {4, 6}},
      {"WithBiases", biased},
      {"Capacity", mixture_config({.count = 4, .capacity = 0.5})},
      {"ExpertsChoose",
       mixture_config({.count = 4, .chooser = Chooser::experts, .normalize = false, .balance = 0},
                      Architecture::encoder)},
      {"BalanceOverSteps", mixture_config({.count = 4, .balance_over = BalanceOver::step}), 2, {5, 3}},
      {"FewerRowsThanProcesses", mixture_config(plain), 4, {3, 6, 2}},
      {"SomeRowsAtATime", mixture_config(plain), 2, {5}, 2},
      {"SomeRowsOfFewAtATime", mixture_config(plain), 4, {5, 3}, 1},
      {"Checkpointed", mixture_config(plain), 2, {6}, 0, ActivationCheckpointing::every_layer},
      {"NobodyAsks",
       mixture_config({.count = 4, .choice_bias = true}),
       2,
       {6},
       0,
       ActivationCheckpointing::none,
       DividedCase::Favour::first_two,
       DividedCase::Embedding::frozen},
      {"Dropout", with_dropout, 4, {4, 8}},
  };
}

class DividedExpertsOf : public ::testing::TestWithParam<DividedCase> {};

TEST_P(DividedExpertsOf, LearnWhatOneProcessLearns) {
  const auto& c = GetParam();
  in_processes(c.n_processes, [&](const ProcessGroup& processes) {
    at::set_num_threads(1);
    std::vector<Batch> batches;
    for (const int64_t n : c.rows) batches.push_back(rows_for(c.model.architecture, n));
    const auto model = mixture_in_training(c.model);
    model->checkpoint_activations(c.checkpointing);
    const auto layers = experts_of(*model);
    for (const auto& layer : layers) {
      if (c.favour == DividedCase::Favour::first_two) layer->choice_bias.narrow(0, 0, 2).fill_(100);
    }
    for (const auto& item : model->named_parameters()) {
      if (c.embedding == DividedCase::Embedding::frozen && item.key().find("embedding") != std::string::npos)
        item.value().requires_grad_(false);
    }
    const auto before = named_tensors(*model);
    TensorMap expected, weights;
    for (const auto& [name, tensor] : before) weights.emplace(name, tensor.clone());
    std::vector<torch::Tensor> counts;
    torch::manual_seed(9);
    GradientAccumulator alone(model, token_loss(), {.n_parts = 1});
    const double expected_loss = alone.differentiate(batches).sum().item<double>();
    for (const auto& item : model->named_parameters()) {
      expected.emplace(item.key(), item.value().grad());
      item.value().mutable_grad().reset();
    }
    for (const auto& layer : layers) counts.push_back(layer->counts());

    const DividedExperts divided(*model, processes);
    GradientAccumulator together(
        model, token_loss(), {.n_parts = 1, .micro_batch_size = c.micro_batch_size}, processes,
        {.bucket_bytes = 4096, .first_bucket_bytes = 1024, .owners = owners_for(*model, divided)});
    torch::manual_seed(9);
    const auto loss = together.differentiate(batches).sum();
    processes.all_reduce(loss).wait();
    EXPECT_NEAR(loss.item<double>(), expected_loss, 1e-5);
    for (size_t i = 0; i < layers.size(); ++i) {
      const auto sum = layers[i]->counts();
      processes.all_reduce(sum).wait();
      EXPECT_TRUE(torch::equal(sum, counts[i])) << sum << counts[i];
    }
    int64_t n_divided = 0, n_whole = 0;
    std::vector<torch::Tensor> all_expected, all_found;
    for (const auto& item : model->named_parameters()) {
      const auto& name = item.key();
      const auto& found = item.value().grad();
      ASSERT_EQ(found.defined(), expected.at(name).defined()) << name;
      if (!found.defined()) continue;
      all_found.push_back(found);
      all_expected.push_back(expected.at(name));
      const auto wanted =
          divided.has(name) ? share_of_process(expected.at(name), processes) : expected.at(name);
      EXPECT_TRUE(torch::allclose(found, wanted, 1e-4, 1e-6)) << name << (found - wanted).abs().max();
      if (!divided.has(name)) continue;
      n_divided += found.numel();
      n_whole += expected.at(name).numel();
      EXPECT_EQ(item.value().nbytes(), weights.at(name).nbytes() / static_cast<size_t>(processes.size()));
      EXPECT_EQ(item.value().storage().nbytes(), item.value().nbytes()) << "no other expert's memory is held";
    }
    EXPECT_EQ(n_divided * processes.size(), n_whole);
    EXPECT_GT(n_divided, 0);
    // The norm counts each expert once, and the others once.
    const auto sorted = divided.sorted(all_found);
    const auto norm = clip_grad_norm(sorted.own, 1e-3, &processes, sorted.shared);
    EXPECT_NEAR(norm.item<double>() / clip_grad_norm(all_expected, 1e-3).item<double>(), 1, 1e-5);
    for (const auto& item : model->named_parameters()) {
      if (!item.value().grad().defined()) continue;
      const auto& all = expected.at(item.key());
      const auto wanted = divided.has(item.key()) ? share_of_process(all, processes) : all;
      EXPECT_TRUE(torch::allclose(item.value().grad(), wanted, 1e-4, 1e-9)) << item.key() << " is clipped";
      item.value().mutable_grad().reset();
    }

    // For a while the model is whole, and what it is given then stays.
    {
      const auto whole = divided.gathered();
      for (const auto& [name, tensor] : named_tensors(*model)) {
        EXPECT_TRUE(torch::equal(tensor, weights.at(name))) << name;
      }
      const torch::NoGradGuard no_grad;
      for (auto& parameter : model->parameters()) parameter.add_(1);
    }
    for (const auto& [name, tensor] : named_weights(*model)) {
      const auto& all = weights.at(name);
      EXPECT_TRUE(torch::equal(tensor, (divided.has(name) ? share_of_process(all, processes) : all) + 1))
          << name;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Parallel, DividedExpertsOf, ::testing::ValuesIn(divided_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(DividedExperts, AreAsManyInEachProcess) {
  in_processes(3, [](const ProcessGroup& processes) {
    const auto model = mixture_in_training(mixture_config({.count = 4}));
    EXPECT_THAT(message_of<ConfigError>([&] { DividedExperts(*model, processes); }),
                HasSubstr("training.parallel.experts: 4 experts cannot be divided among 3 processes"));
  });
}

TEST(DividedExperts, HaveAStateThatIsGatheredAndDivided) {
  in_processes(2, [](const ProcessGroup& processes) {
    const auto model = mixture_in_training(mixture_config({.count = 4}));
    const Optimizer whole({}, parameters_of(*model));
    TensorMap all;
    torch::manual_seed(3);
    for (const auto& [name, tensor] : whole.state()) all.emplace(name, torch::randn_like(tensor));
    const DividedExperts divided(*model, processes);
    const Optimizer own({}, parameters_of(*model));
    const auto state = own.state();
    size_t n_own = 0, n_all = 0;
    for (const auto& [name, tensor] : state) {
      n_own += divided.has(name) && tensor.dim() > 0 ? tensor.nbytes() : 0;
      n_all += divided.has(name) && tensor.dim() > 0 ? all.at(name).nbytes() : 0;
      if (!divided.has(name) || tensor.dim() == 0) tensor.copy_(all.at(name));
    }
    EXPECT_EQ(2 * n_own, n_all);
    EXPECT_GT(n_own, size_t{0});
    auto room = divided.room_for(state);
    for (const auto& [name, tensor] : room) tensor.copy_(all.at(name));
    divided.take_rows(room, state);
    const auto gathered = divided.gather(state);
    if (!processes.is_first()) return;
    ASSERT_EQ(gathered.size(), all.size());
    for (const auto& [name, tensor] : gathered) EXPECT_TRUE(torch::equal(tensor, all.at(name))) << name;
  });
}

}  // namespace
}  // namespace zoo::testing
