#include "kernels/gelu.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

namespace zoo {
namespace {

struct ValueAndGradient {
  torch::Tensor value, gradient;
};

/// float64 uses no kernel of ours.
ValueAndGradient gelu_of(const torch::Tensor& numbers, torch::ScalarType type, Phi phi) {
  torch::manual_seed(1);
  const auto x = numbers.to(type, /*non_blocking=*/false, /*copy=*/true).requires_grad_();
  const auto y = gelu(x, phi);
  (y * torch::randn(y.sizes()).to(type)).sum().backward();
  return {y.detach(), x.grad()};
}

class GeluTest : public ::testing::TestWithParam<Phi> {};

TEST_P(GeluTest, IsThatOfFloat64) {
  const auto everywhere = torch::linspace(-12, 12, 40001), matrix = torch::randn({5, 3, 17}),
             transposed = torch::randn({64, 33}).t();
  for (const auto& x : {everywhere, matrix, transposed, torch::randn({0, 4})}) {
    const auto ours = gelu_of(x, torch::kFloat, GetParam()), exact = gelu_of(x, torch::kDouble, GetParam());
    EXPECT_TRUE(torch::allclose(ours.value.to(torch::kDouble), exact.value, 1e-6, 4e-7));
    EXPECT_TRUE(torch::allclose(ours.gradient.to(torch::kDouble), exact.gradient, 1e-6, 1e-6));
  }
}

TEST_P(GeluTest, IsTheSameWithoutAGradient) {
  const auto x = torch::randn({1000}) * 3;
  EXPECT_TRUE(torch::equal(gelu(x, GetParam()), gelu_of(x, torch::kFloat, GetParam()).value));
}

TEST_P(GeluTest, StaysFiniteFarOut) {
  const auto x = torch::tensor({-1e15F, -200.F, -90.F, 0.F, 90.F, 200.F}).requires_grad_();
  const auto y = gelu(x, GetParam());
  EXPECT_TRUE(torch::allclose(y, torch::tensor({0.F, 0.F, 0.F, 0.F, 90.F, 200.F}), 0, 1e-6));
  y.sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), torch::tensor({0.F, 0.F, 0.F, 0.5F, 1.F, 1.F}), 0, 1e-6));
}

TEST_P(GeluTest, KeepsWhatIsNotANumber) {
  const auto nan = torch::full({4}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(gelu(nan, GetParam()).isnan().all().item<bool>());
}

TEST_P(GeluTest, LeavesSixteenBitsToLibTorch) {
  const auto x = torch::randn({50}).to(torch::kBFloat16);
  EXPECT_TRUE(torch::equal(gelu(x, GetParam()), torch::gelu(x, GetParam() == Phi::exact ? "none" : "tanh")));
}

INSTANTIATE_TEST_SUITE_P(Forms, GeluTest, ::testing::Values(Phi::exact, Phi::by_tanh),
                         [](const auto& form) { return form.param == Phi::exact ? "Exact" : "ByTanh"; });

}  // namespace
}  // namespace zoo
