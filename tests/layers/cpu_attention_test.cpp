#include "kernels/cpu_attention.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/scaled_dot_product.h"

namespace zoo {
namespace {

struct Shape {
  int64_t batch, n_heads, n_kv_heads, n_queries, n_keys, head_dim, value_dim;
};

/// Heads in the memory layout of a projection: (B, T, H, D).
torch::Tensor heads(int64_t batch, int64_t n_heads, int64_t n_rows, int64_t width) {
  return torch::randn({batch, n_rows, n_heads, width}).transpose(1, 2);
}

enum class Visible { all_keys, causal };

VisiblePairs pairs(Visible visible, int64_t n_queries, int64_t n_keys) {
  auto band = Band::all({.count = n_queries}, {.count = n_keys});
  if (visible == Visible::causal) band.high = n_keys - n_queries + 1;
  return VisiblePairs(Bands{band});
}

/// Output and gradients.
std::vector<torch::Tensor> results(const Shape& s, Visible visible, torch::ScalarType type) {
  torch::manual_seed(1);
  std::vector<torch::Tensor> inputs = {heads(s.batch, s.n_heads, s.n_queries, s.head_dim),
                                       heads(s.batch, s.n_kv_heads, s.n_keys, s.head_dim),
                                       heads(s.batch, s.n_kv_heads, s.n_keys, s.value_dim)};
  for (auto& x : inputs) x = x.to(type).requires_grad_();
  const auto &q = inputs[0], &k = inputs[1], &v = inputs[2];
  constexpr double scale = 0.3;
  ScaledDotProductOptions options{.mask = visible == Visible::all_keys ? Mask() : Mask::causal(),
                                  .scale = scale};
  const auto out = type == torch::kFloat
                       ? cpu_attention(q, k, v, pairs(visible, s.n_queries, s.n_keys), scale)
                       : explicit_attention(q, k, v, options).output;
  torch::manual_seed(2);
  (out * torch::randn(out.sizes()).to(type)).sum().backward();
  return {out.detach(), q.grad(), k.grad(), v.grad()};
}

TEST(CpuAttention, IsAttentionStepByStep) {
  for (const Shape& s :
       {Shape{2, 2, 2, 8, 8, 16, 16}, Shape{1, 4, 2, 24, 24, 32, 32}, Shape{2, 6, 2, 25, 25, 48, 16},
        Shape{1, 2, 1, 64, 64, 64, 80}, Shape{1, 1, 1, 131, 131, 32, 32}, Shape{1, 2, 2, 600, 600, 16, 16},
        Shape{1, 2, 1, 50, 300, 16, 32}}) {
    for (const auto visible : {Visible::all_keys, Visible::causal}) {
      const auto ours = results(s, visible, torch::kFloat), exact = results(s, visible, torch::kDouble);
      for (size_t i = 0; i < ours.size(); ++i) {
        EXPECT_LE((ours[i] - exact[i]).norm().item<double>(), 2e-6 * exact[i].norm().item<double>())
            << s.n_queries << " queries, tensor " << i;
      }
    }
  }
  for (const int64_t n_keys : {1, 7, 40, 100}) {
    const Shape s{2, 2, 2, 30, n_keys, 16, 32};
    const auto ours = results(s, Visible::all_keys, torch::kFloat),
               exact = results(s, Visible::all_keys, torch::kDouble);
    for (size_t i = 0; i < ours.size(); ++i) {
      // With one key the weight is always 1, so some gradients are 0.
      EXPECT_LE((ours[i] - exact[i]).norm().item<double>(), 2e-6 * exact[i].norm().item<double>() + 2e-5)
          << n_keys << " keys, tensor " << i;
    }
  }
}

TEST(CpuAttention, LargeScoresStayFinite) {
  torch::manual_seed(1);
  const auto directions = torch::randn({1, 1, 32, 16});
  const auto q = 100 * directions / directions.norm(2, -1, /*keepdim=*/true);
  const auto out = cpu_attention(q, q, q, pairs(Visible::causal, 32, 32), 1.0);
  EXPECT_TRUE(out.isfinite().all().item<bool>());
  EXPECT_TRUE(torch::allclose(out, q, 1e-4, 1e-3));  // each query sees mainly its own key
}

TEST(CpuAttention, LaterKeysChangeNothingAtAll) {
  const auto x = torch::randn({1, 2, 40, 16});
  auto changed = x.clone();
  changed.narrow(2, 30, 10).mul_(1000);
  const auto a = cpu_attention(x, x, x, pairs(Visible::causal, 40, 40), 0.25);
  const auto b = cpu_attention(changed, changed, changed, pairs(Visible::causal, 40, 40), 0.25);
  EXPECT_TRUE(torch::equal(a.narrow(2, 0, 30), b.narrow(2, 0, 30)));
}

TEST(CpuAttention, IsTheSameWithAnyNumberOfThreads) {
  const Shape s{3, 4, 2, 50, 50, 32, 32};
  const int n_threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto expected = results(s, Visible::causal, torch::kFloat);
  at::set_num_threads(3);
  const auto ours = results(s, Visible::causal, torch::kFloat);
  at::set_num_threads(n_threads);
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(torch::equal(ours[i], expected[i])) << i;
}

TEST(CpuAttention, LeavesOthersToLibTorch) {
  const auto few = torch::zeros({1, 2, 16, 16}), many = torch::zeros({4, 2, 16, 16});
  EXPECT_FALSE(has_cpu_attention(many, few, few));  // LibTorch broadcasts these keys
  EXPECT_FALSE(has_cpu_attention(many, many, torch::zeros({4, 2, 8, 16})));
  EXPECT_FALSE(has_cpu_attention(torch::zeros({4, 2, 16, 32}), many, many));
  const auto x = torch::zeros({1, 2, 16, 16}), narrow = torch::zeros({1, 2, 16, 8});
  EXPECT_FALSE(has_cpu_attention(narrow, narrow, narrow));
  EXPECT_FALSE(has_cpu_attention(x.to(torch::kDouble), x, x));
  EXPECT_FALSE(has_cpu_attention(x.transpose(2, 3), x, x));
  EXPECT_FALSE(has_cpu_attention(x.narrow(2, 0, 1), x, x));
  EXPECT_THROW(cpu_attention(narrow, narrow, narrow, pairs(Visible::all_keys, 16, 16), 1.0), c10::Error);
}

}  // namespace
}  // namespace zoo
