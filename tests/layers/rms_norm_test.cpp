#include "kernels/rms_norm.h"

#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

/// Relative to the norm of the summands: where they cancel out, only rounding errors remain.
double error(const torch::Tensor& value, const torch::Tensor& exact, const torch::Tensor& summands) {
  return ((value - exact).norm() / summands.abs().norm()).item<double>();
}

// Compares with LibTorch in float64, for which our kernel is not used.
TEST(RmsNorm, ValuesAndGradientsAreThoseOfTorch) {
  torch::manual_seed(1);
  for (const int64_t width : {1, 5, 31, 32, 33, 192, 1000}) {
    for (const int64_t n_rows : {1, 7, 300}) {
      SCOPED_TRACE(testing::Message() << n_rows << " rows of " << width);
      const auto x = (torch::randn({n_rows, width}) * 3 + 1).requires_grad_();
      const auto gain = torch::randn({width}).requires_grad_();
      const auto weights = torch::randn({n_rows, width});
      const auto x_exact = x.detach().to(torch::kDouble).requires_grad_();
      const auto gain_exact = gain.detach().to(torch::kDouble).requires_grad_();

      const auto y = rms_norm(x, gain, 1e-3), y_exact = torch::rms_norm(x_exact, {width}, gain_exact, 1e-3);
      (y * weights).sum().backward();
      (y_exact * weights).sum().backward();
      const auto scale = (x_exact.square().mean(-1, true) + 1e-3).rsqrt().detach();
      EXPECT_LE(error(y, y_exact, y_exact), 1e-6);
      EXPECT_LE(error(x.grad(), x_exact.grad(), weights * gain * scale), 1e-6);
      EXPECT_LE(error(gain.grad(), gain_exact.grad(), (weights * x * scale).abs().sum(0)), 1e-6);
    }
  }
}

TEST(RmsNorm, TakesAnyShapeAndLayout) {
  torch::manual_seed(1);
  const auto gain = torch::randn({6});
  const auto x = torch::randn({6, 4, 3}).permute({2, 1, 0});
  const auto y = rms_norm(x, gain, 1e-6);
  EXPECT_EQ(y.sizes(), x.sizes());
  EXPECT_TRUE(torch::allclose(y, torch::rms_norm(x, {6}, gain, 1e-6), 1e-5, 1e-6));
  EXPECT_EQ(rms_norm(torch::randn({0, 6}), gain, 1e-6).sizes(), (torch::IntArrayRef{0, 6}));
  EXPECT_EQ(rms_norm(x.to(torch::kBFloat16), gain.to(torch::kBFloat16), 1e-6).scalar_type(),
            torch::kBFloat16);
}

TEST(RmsNorm, OfSixteenBitsIsThatOfItsGainsType) {
  torch::manual_seed(1);
  const auto gain = torch::randn({40});
  const auto x = torch::randn({3, 40}).to(torch::kBFloat16);
  EXPECT_TRUE(torch::equal(rms_norm(x, gain, 1e-6), rms_norm(x.to(torch::kFloat), gain, 1e-6)));
}

TEST(RmsNorm, TheGainMustBeAsWideAsTheRows) {
  EXPECT_THROW(rms_norm(torch::randn({2, 64}), torch::ones({4}), 1e-6), c10::Error);
}

TEST(RmsNorm, IsTheSameWithAnyNumberOfThreads) {
  torch::manual_seed(1);
  const auto x = torch::randn({999, 64}).requires_grad_(), gain = torch::randn({64}).requires_grad_();
  const auto weights = torch::randn({999, 64});
  const int n_threads = at::get_num_threads();
  std::vector<torch::Tensor> all;
  for (const int n : {1, 2, 3}) {
    at::set_num_threads(n);
    const auto y = rms_norm(x, gain, 1e-6);
    const auto gradients = torch::autograd::grad({(y * weights).sum()}, {x, gain});
    all.insert(all.end(), {y.detach(), gradients[0], gradients[1]});
  }
  at::set_num_threads(n_threads);
  for (size_t i = 3; i < all.size(); ++i) EXPECT_TRUE(torch::equal(all[i], all[i % 3])) << i;
}

TEST(RmsNorm, OfZerosIsZeroAndHasAGradient) {
  const auto x = torch::zeros({2, 40}).requires_grad_();
  const auto y = rms_norm(x, torch::ones({40}), 1e-4);
  EXPECT_TRUE(torch::equal(y, torch::zeros({2, 40})));
  y.sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), torch::full({2, 40}, 100.0F)));
}

}  // namespace
}  // namespace zoo
