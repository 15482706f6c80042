// Soft caps of attention scores: every way of computing attention gives what the formula says.

#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/banded_attention.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/attention/window_pattern.h"

namespace zoo {
namespace {

constexpr double kCap = 0.7, kScale = 0.9;

/// The formula, step by step, over the pairs that `visible` (T, S) shows.
torch::Tensor capped_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                               const torch::Tensor& visible) {
  const auto scores = kCap * torch::tanh(kScale * torch::matmul(q, k.transpose(-2, -1)) / kCap);
  return torch::matmul(scores.masked_fill(visible.logical_not(), -INFINITY).softmax(-1), v);
}

TEST(SoftCap, IsThatOfTheFormulaInEveryKernel) {
  torch::manual_seed(4);
  constexpr int64_t n = 70;
  const auto q = torch::randn({2, 3, n, 8}).requires_grad_(), k = torch::randn({2, 3, n, 8}),
             v = torch::randn({2, 3, n, 8});
  const auto gradient_of = [&](const torch::Tensor& y) {
    return torch::autograd::grad({y.square().sum()}, {q}, /*grad_outputs=*/{}, /*retain_graph=*/true).front();
  };
  const auto expect_same = [&](const torch::Tensor& y, const torch::Tensor& expected) {
    EXPECT_TRUE(torch::allclose(y, expected, 1e-4, 1e-5));
    EXPECT_TRUE(torch::allclose(gradient_of(y), gradient_of(expected), 1e-3, 1e-4));
  };
  const auto causal = torch::ones({n, n}, torch::kBool).tril();
  const auto full = capped_attention(q, k, v, causal);
  const ScaledDotProductOptions call{.mask = Mask::causal(), .scale = kScale, .softcap = kCap};
  expect_same(fused_attention(q, k, v, call), full);
  expect_same(explicit_attention(q, k, v, call).output, full);
  EXPECT_FALSE(
      torch::allclose(fused_attention(q, k, v, {.mask = Mask::causal(), .scale = kScale}), full, 1e-2, 1e-2));

  const WindowPattern window(Direction::causal, WindowOptions().size(5));
  const auto near = causal.logical_and(torch::ones({n, n}, torch::kBool).triu(-5));
  const auto pairs = window.visible({.length = n});
  expect_same(banded_attention(q, k, v, pairs, kScale, 0, kCap), capped_attention(q, k, v, near));
  expect_same(gathered_attention(q, k, v, pairs, kScale, 0, kCap), capped_attention(q, k, v, near));
}

}  // namespace
}  // namespace zoo
