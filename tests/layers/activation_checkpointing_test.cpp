#include "layers/activation_checkpointing.h"

#include <thread>

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "kernels/dropout.h"

namespace zoo {
namespace {

using Tensors = std::vector<torch::Tensor>;

/// dropout(x Wᵀ) ⊙ y, and the number of its calls.
struct Part {
  torch::Tensor weight;
  int calls = 0;

  torch::Tensor operator()(const torch::Tensor& x, const torch::Tensor& y) {
    ++calls;
    return dropout(torch::linear(x, weight), 0.4) * y;
  }
};

struct Values {
  torch::Tensor x = torch::randn({5, 8}), y = torch::randn({5, 8}), weight = torch::randn({8, 8});
  Values() {
    for (auto* const tensor : {&x, &y, &weight}) tensor->requires_grad_();
  }
};

/// The output, the gradients of x, y and the weight, and two numbers that are drawn afterwards.
Tensors outcome(const Values& values, ActivationCheckpointing checkpointing) {
  Part part{values.weight};
  torch::Tensor output;
  if (checkpointing == ActivationCheckpointing::none) {
    output = part(values.x, values.y);
  } else {
    output = recomputed([&](const Tensors& inputs) { return part(inputs[0], inputs[1]); },
                        {values.x, values.y}, {values.weight});
  }
  auto after = torch::tensor(static_cast<int64_t>(draw_seed() >> 1));
  auto result = torch::autograd::grad({output.square().sum()}, {values.x, values.y, values.weight});
  EXPECT_EQ(part.calls, checkpointing == ActivationCheckpointing::none ? 1 : 2);
  result.insert(result.end(),
                {output.detach(), after, torch::tensor(static_cast<int64_t>(draw_seed() >> 1))});
  return result;
}

void expect_equal(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
}

TEST(Recomputed, IsThePlainCallToTheLastBit) {
  torch::manual_seed(1);
  const Values values;
  const auto in_scope = [&](ActivationCheckpointing checkpointing) {
    const RandomScope random({7});
    return outcome(values, checkpointing);
  };
  const auto with_the_default_generator = [&](ActivationCheckpointing checkpointing) {
    torch::manual_seed(8);
    return outcome(values, checkpointing);
  };
  expect_equal(in_scope(ActivationCheckpointing::every_layer), in_scope(ActivationCheckpointing::none));
  expect_equal(with_the_default_generator(ActivationCheckpointing::every_layer),
               with_the_default_generator(ActivationCheckpointing::none));
}

TEST(Recomputed, ThreadsDoNotDisturbEachOther) {
  torch::manual_seed(1);
  const Values values;
  const auto of_thread = [&](uint64_t i, ActivationCheckpointing checkpointing) {
    const RandomScope random({7, i});
    return outcome(values, checkpointing);
  };
  constexpr size_t n = 4;
  std::vector<Tensors> found(n);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n; ++i)
    threads.emplace_back([&, i] { found[i] = of_thread(i, ActivationCheckpointing::every_layer); });
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < n; ++i) expect_equal(found[i], of_thread(i, ActivationCheckpointing::none));
}

// The second call rounds as the first did, even if autocast has changed before the backward pass.
TEST(Recomputed, RoundsAsInTheFirstCall) {
  torch::manual_seed(1);
  const Values values;
  std::vector<torch::ScalarType> types;
  const auto note = [&](const Tensors& inputs) {
    const auto product = torch::linear(inputs[0], values.weight);
    types.push_back(product.scalar_type());
    return product.to(torch::kFloat);
  };
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, torch::kBFloat16);
  at::autocast::set_autocast_cache_enabled(false);
  const auto output = recomputed(note, {values.x}, {values.weight});
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::set_autocast_cache_enabled(true);
  torch::autograd::grad({output.sum()}, {values.x, values.weight});
  EXPECT_EQ(types, std::vector(2, torch::kBFloat16));
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

TEST(Recomputed, TakesGradientsOfWhatIsAskedForAlone) {
  const Values values;
  const auto fixed = torch::randn({5, 8});
  const auto output =
      recomputed([&](const Tensors& inputs) { return inputs[0] * inputs[1] + values.x.detach(); },
                 {values.x, fixed}, {values.weight});
  const auto found =
      torch::autograd::grad({output.sum()}, {values.x, values.weight}, {},
                            /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  EXPECT_TRUE(torch::equal(found[0], fixed));
  EXPECT_FALSE(found[1].defined());
}

// A parameter's hook can tell the final gradient from a partial one.
TEST(Recomputed, SaysWhenAGradientComesTwice) {
  const Values values;
  std::vector<bool> recomputing;
  values.weight.register_hook([&](const torch::Tensor&) { recomputing.push_back(is_recomputing()); });
  const auto output =
      recomputed([&](const Tensors& inputs) { return torch::linear(inputs[0], values.weight); }, {values.x},
                 {values.weight});
  torch::autograd::grad({output.sum()}, {values.weight});
  EXPECT_EQ(recomputing, (std::vector{true, false}));
  EXPECT_FALSE(is_recomputing());
}

TEST(Recomputed, RefusesWhatItCannotDo) {
  const Values values;
  const auto square = [](const Tensors& inputs) { return inputs[0].square(); };
  EXPECT_THROW(recomputed(square, {}, {}), c10::Error);
  EXPECT_THROW(recomputed(square, {values.x, torch::Tensor()}, {}), c10::Error);
  const auto output = recomputed(square, {values.x}, {}).sum();
  EXPECT_THROW(torch::autograd::grad({output}, {values.x}, {}, /*retain_graph=*/true, /*create_graph=*/true),
               c10::Error);
  // With a weight that has changed meanwhile, the result would be the gradient of another function.
  const auto stale =
      recomputed([&](const Tensors& inputs) { return torch::linear(inputs[0], values.weight); }, {values.x},
                 {values.weight});
  {
    const torch::NoGradGuard no_grad;
    torch::Tensor(values.weight).mul_(2);
  }
  EXPECT_THROW(torch::autograd::grad({stale.sum()}, {values.x}), c10::Error);
}

TEST(SeedReplay, EndsWhereTheRecordDoes) {
  const RandomScope random({3});
  SeedRecord record;
  const uint64_t first = draw_seed(), second = draw_seed();
  SeedReplay replay(record.seeds());
  EXPECT_EQ(draw_seed(), first);
  EXPECT_EQ(draw_seed(), second);
  EXPECT_THROW(draw_seed(), c10::Error);
}

}  // namespace
}  // namespace zoo
