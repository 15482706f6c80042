#include "kernels/linear.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

/// Output and gradients of our linear() or of LibTorch's.
std::vector<torch::Tensor> results(const torch::IntArrayRef sizes, int64_t n_outputs, bool has_bias,
                                   bool ours) {
  torch::manual_seed(1);
  const auto x = torch::randn(sizes).requires_grad_();
  const auto weight = torch::randn({n_outputs, sizes.back()}).requires_grad_();
  const auto bias = has_bias ? torch::randn({n_outputs}).requires_grad_() : torch::Tensor();
  const auto y = ours ? zoo::linear(x, weight, bias) : torch::linear(x, weight, bias);
  (y * torch::randn_like(y)).sum().backward();
  std::vector<torch::Tensor> list = {y.detach(), x.grad(), weight.grad()};
  if (has_bias) list.push_back(bias.grad());
  return list;
}

TEST(Linear, IsThatOfTorch) {
  for (const auto& sizes :
       std::vector<std::vector<int64_t>>{{64, 40}, {3, 50, 24}, {2, 3, 4, 16, 8}, {5, 8}}) {
    for (const bool has_bias : {false, true}) {
      const auto ours = results(sizes, 33, has_bias, true), theirs = results(sizes, 33, has_bias, false);
      for (size_t i = 0; i < ours.size(); ++i) {
        EXPECT_EQ(ours[i].sizes(), theirs[i].sizes());
        EXPECT_LE((ours[i] - theirs[i]).norm().item<double>(), 1e-6 * theirs[i].norm().item<double>()) << i;
      }
    }
  }
}

TEST(Linear, FrozenWeightsAndInputsHaveNoGradient) {
  const auto x = torch::randn({64, 16}).requires_grad_();
  const auto weight = torch::randn({8, 16});
  zoo::linear(x, weight).sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), weight.sum(0).expand({64, 16}), 1e-5, 1e-5));
  const auto trained = torch::randn({8, 16}).requires_grad_();
  const auto input = torch::randn({64, 16});
  zoo::linear(input, trained).sum().backward();
  EXPECT_TRUE(torch::allclose(trained.grad(), input.sum(0).expand({8, 16}), 1e-5, 1e-5));
}

TEST(Linear, OtherTypesAreLibTorchs) {
  const auto x = torch::randn({64, 16}, torch::kDouble);
  const auto weight = torch::randn({8, 16}, torch::kDouble);
  EXPECT_TRUE(torch::equal(zoo::linear(x, weight), torch::linear(x, weight)));
  EXPECT_TRUE(torch::equal(zoo::linear(x.to(torch::kBFloat16), weight.to(torch::kBFloat16)),
                           torch::linear(x.to(torch::kBFloat16), weight.to(torch::kBFloat16))));
}

}  // namespace
}  // namespace zoo
