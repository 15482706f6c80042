#include "layers/attention/scaled_dot_product.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

constexpr int64_t kBatch = 2, kNumHeads = 4, kWidth = 8;

ScaledDotProductOptions options_of(const Mask& mask, const torch::Tensor& bias = {}) {
  ScaledDotProductOptions options;
  options.mask = mask;
  options.bias = bias;
  return options;
}

struct Inputs {
  torch::Tensor q, k, v, bias;

  Inputs(int64_t n_queries, int64_t n_keys, int64_t kv_heads, int64_t value_width, bool with_bias,
         int64_t width = kWidth, torch::ScalarType type = torch::kFloat) {
    q = torch::randn({kBatch, kNumHeads, n_queries, width}, type).requires_grad_(true);
    k = torch::randn({kBatch, kv_heads, n_keys, width}, type).requires_grad_(true);
    v = torch::randn({kBatch, kv_heads, n_keys, value_width}, type).requires_grad_(true);
    if (with_bias) bias = torch::randn({1, kNumHeads, n_queries, n_keys}, type).requires_grad_(true);
  }
  std::vector<torch::Tensor> differentiable() const {
    std::vector<torch::Tensor> tensors{q, k, v};
    if (bias.defined()) tensors.push_back(bias);
    return tensors;
  }
};

std::vector<std::pair<std::string, Mask>> masks(int64_t n_queries, int64_t n_keys) {
  const auto lengths = torch::tensor({n_keys, n_keys / 2});
  const auto offsets = torch::tensor({n_keys / 3, n_keys - n_queries});
  auto pattern = torch::rand({kBatch, n_queries, n_keys}).lt(0.6);
  pattern.select(2, 0).fill_(true);
  return {{"none", Mask()},
          {"causal", Mask::causal()},
          {"lengths", Mask::lengths(lengths)},
          {"offsets", Mask::causal(offsets)},
          {"causal and lengths", Mask::causal() & Mask::lengths(lengths)},
          {"causal and offsets", Mask::causal() & Mask::causal(offsets)},
          {"offsets and lengths", Mask::causal(offsets) & Mask::lengths(lengths)},
          {"explicit", Mask::keep(pattern)}};
}

// Forward and backward pass for every mask, with and without bias, with grouped heads, with as many queries
// as keys and with fewer.
TEST(ScaledDotProduct, FusedEqualsExplicit) {
  torch::manual_seed(1);
  for (const auto& [n_queries, n_keys] : {std::pair<int64_t, int64_t>{9, 9}, {4, 9}, {1, 9}}) {
    for (const auto& [name, mask] : masks(n_queries, n_keys)) {
      for (const int64_t kv_heads : {kNumHeads, int64_t{2}, int64_t{1}}) {
        for (const bool with_bias : {false, true}) {
          SCOPED_TRACE(name + (with_bias ? ", bias" : ""));
          const Inputs inputs(n_queries, n_keys, kv_heads, kWidth, with_bias);
          const auto options = options_of(mask, inputs.bias);
          const auto fused = fused_attention(inputs.q, inputs.k, inputs.v, options);
          const auto stepwise = explicit_attention(inputs.q, inputs.k, inputs.v, options);
          EXPECT_EQ(fused.sizes(), (torch::IntArrayRef{kBatch, kNumHeads, n_queries, kWidth}));
          EXPECT_TRUE(torch::allclose(fused, stepwise.output, 1e-5, 1e-6)) << fused - stepwise.output;

          const auto upstream = torch::randn_like(fused);
          const auto a = torch::autograd::grad({fused}, inputs.differentiable(), {upstream});
          const auto b = torch::autograd::grad({stepwise.output}, inputs.differentiable(), {upstream});
          for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(torch::allclose(a[i], b[i], 1e-4, 1e-5)) << i;
        }
      }
    }
  }
}

TEST(ScaledDotProduct, RowsOfWeightsSumToOne) {
  torch::manual_seed(2);
  for (const auto& [name, mask] : masks(6, 9)) {
    SCOPED_TRACE(name);
    const Inputs inputs(6, 9, 2, kWidth, true);
    const auto weights =
        explicit_attention(inputs.q, inputs.k, inputs.v, options_of(mask, inputs.bias)).weights;
    // A mask may leave a row without any key; here every row sees at least one.
    const auto visible = mask.materialize(6, 9, torch::kCPU);
    if (visible.defined()) {
      EXPECT_EQ(weights.masked_select(visible.logical_not()).abs().sum().item<float>(), 0);
    }
    EXPECT_TRUE(torch::allclose(weights.sum(-1), torch::ones({kBatch, kNumHeads, 6}), 0, 1e-5));
  }
}

// With queries enough and a width for our own kernel, and with what LibTorch's kernels get.
TEST(ScaledDotProduct, RowBlockedEverywhereGivesZerosAndNoNanForwardsOrBackwards) {
  torch::manual_seed(3);
  constexpr int64_t n_queries = 9, n_keys = 11;
  auto keep = torch::ones({kBatch, n_queries, n_keys}, torch::kBool);
  keep.index_put_({0, 2}, false);  // one query of the first sequence sees nothing
  const std::vector<Mask> blocking{
      Mask::keep(keep), Mask::lengths(torch::tensor({0L, n_keys})),
      Mask::causal() & Mask::lengths(torch::tensor({0L, n_keys})),
      Mask::causal(torch::tensor({2, 1})) & Mask::lengths(torch::tensor({0L, n_keys}))};
  const auto check = [&](const Mask& mask, const Inputs& inputs, bool fused) {
    const auto options = options_of(mask, inputs.bias);
    torch::Tensor y;
    if (fused) {
      y = fused_attention(inputs.q, inputs.k, inputs.v, options);
    } else {
      const auto result = explicit_attention(inputs.q, inputs.k, inputs.v, options);
      EXPECT_EQ(result.weights[0].select(1, 2).abs().max().item<float>(), 0);
      y = result.output;
    }
    EXPECT_EQ(y[0].select(1, 2).abs().max().item<float>(), 0);
    EXPECT_GT(y[1].abs().min().item<float>(), 0);
    for (const auto& gradient : torch::autograd::grad({y}, inputs.differentiable(), {torch::randn_like(y)})) {
      EXPECT_TRUE(gradient.isfinite().all().item<bool>());
    }
  };
  for (size_t m = 0; m < blocking.size(); ++m) {
    for (const bool with_bias : {false, true}) {
      for (const bool fused : {false, true}) {
        for (const auto& [width, type] : {std::pair<int64_t, torch::ScalarType>{kWidth, torch::kFloat},
                                          {16, torch::kFloat},
                                          {16, torch::kDouble},
                                          {16, torch::kBFloat16}}) {
          SCOPED_TRACE(testing::Message() << "mask " << m << (with_bias ? ", bias" : "")
                                          << (fused ? ", fused" : "") << ", width " << width << " " << type);
          check(blocking[m], Inputs(n_queries, n_keys, kNumHeads, width, with_bias, width, type), fused);
        }
      }
    }
  }
}

// With q and k of unit variance a dot product has variance d_k; the factor 1/√d_k makes it 1.
TEST(ScaledDotProduct, ScaleBringsTheVarianceOfScoresToOne) {
  torch::manual_seed(4);
  constexpr int64_t kWide = 64;
  const auto q = torch::randn({4, 4, 128, kWide}), k = torch::randn({4, 4, 128, kWide});
  const auto scores = torch::matmul(q, k.transpose(-2, -1));
  EXPECT_NEAR(scores.var().item<double>() / kWide, 1.0, 0.03);
  EXPECT_NEAR((scores / 8.0).var().item<double>(), 1.0, 0.03);

  // The functions apply this factor by default: log weights differ from scaled scores by a constant per row.
  const auto weights = explicit_attention(q, k, k).weights;
  const auto centred = [](const torch::Tensor& x) { return x - x.mean(-1, true); };
  EXPECT_TRUE(torch::allclose(centred(weights.log()), centred(scores / 8.0), 1e-4, 1e-4));
}

TEST(ScaledDotProduct, ScaleOfTheCallReplacesTheDefault) {
  torch::manual_seed(5);
  const Inputs inputs(4, 4, kNumHeads, kWidth, false);
  ScaledDotProductOptions unscaled;
  unscaled.scale = 1.0;
  const auto expected = explicit_attention(inputs.q * std::sqrt(double{kWidth}), inputs.k, inputs.v).output;
  EXPECT_TRUE(torch::allclose(explicit_attention(inputs.q, inputs.k, inputs.v, unscaled).output, expected,
                              1e-4, 1e-5));
  EXPECT_TRUE(torch::allclose(fused_attention(inputs.q, inputs.k, inputs.v, unscaled), expected, 1e-4, 1e-5));
}

TEST(ScaledDotProduct, AnyScaleWillDo) {
  torch::manual_seed(5);
  const auto x = torch::randn({2, 2, 16, 16});
  for (const double scale : {-0.5, 0.0}) {
    const ScaledDotProductOptions options{.mask = Mask::causal(), .scale = scale};
    EXPECT_TRUE(torch::allclose(fused_attention(x, x, x, options),
                                explicit_attention(x, x, x, options).output, 1e-5, 1e-6));
  }
}

TEST(ScaledDotProduct, ValuesMayHaveAnotherWidthThanKeys) {
  torch::manual_seed(6);
  for (const int64_t kv_heads : {kNumHeads, int64_t{2}}) {
    const Inputs inputs(5, 7, kv_heads, 13, false);
    const auto fused = fused_attention(inputs.q, inputs.k, inputs.v);
    EXPECT_EQ(fused.sizes(), (torch::IntArrayRef{kBatch, kNumHeads, 5, 13}));
    EXPECT_TRUE(torch::allclose(fused, explicit_attention(inputs.q, inputs.k, inputs.v).output, 1e-5, 1e-6));
  }
}

TEST(ScaledDotProduct, DropoutDropsWeightsAndKeepsTheirMean) {
  torch::manual_seed(7);
  const Inputs inputs(64, 64, kNumHeads, kWidth, false);
  ScaledDotProductOptions options;
  options.dropout = 0.25;
  const auto weights = explicit_attention(inputs.q, inputs.k, inputs.v, options).weights;
  EXPECT_NEAR(weights.eq(0).to(torch::kFloat).mean().item<double>(), 0.25, 0.02);
  EXPECT_NEAR(weights.sum(-1).mean().item<double>(), 1.0, 0.02);
}

}  // namespace
}  // namespace zoo
