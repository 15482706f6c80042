#include "kernels/few_queries.h"

#include <limits>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/scaled_dot_product.h"

namespace zoo {
namespace {

struct FewShape {
  int64_t batch, n_heads, n_kv_heads, n_queries, n_keys, head_dim, value_dim;
};

/// Heads in a storage with room for more rows, as a cache has them.
torch::Tensor stored_heads(int64_t batch, int64_t n_heads, int64_t n_rows, int64_t width) {
  return torch::randn({batch, n_heads, n_rows + 3, width}).narrow(2, 0, n_rows);
}

constexpr FewShape kFewShapes[] = {{1, 1, 1, 1, 1, 16, 16},    {2, 4, 2, 1, 37, 64, 64},
                                   {3, 6, 6, 7, 50, 20, 12},   {1, 8, 1, 2, 300, 32, 48},
                                   {5, 2, 2, 3, 17, 128, 128}, {2, 3, 3, 1, 1000, 8, 8}};

struct QueriesKeysValues {
  torch::Tensor q, k, v;
};

QueriesKeysValues few_inputs(const FewShape& s) {
  torch::manual_seed(1);
  return {.q = torch::randn({s.batch, s.n_queries, s.n_heads, s.head_dim}).transpose(1, 2),
          .k = stored_heads(s.batch, s.n_kv_heads, s.n_keys, s.head_dim),
          .v = stored_heads(s.batch, s.n_kv_heads, s.n_keys, s.value_dim)};
}

/// A mask for each row, for each head, or for both alike; some queries see nothing.
std::vector<torch::Tensor> some_masks(const FewShape& s) {
  std::vector<torch::Tensor> result = {torch::Tensor()};
  for (const auto& [rows, heads] :
       {std::pair{s.batch, int64_t{1}}, {int64_t{1}, s.n_heads}, {s.batch, s.n_heads}})
    result.push_back(torch::rand({rows, heads, s.n_queries, s.n_keys}).gt(0.4));
  result.push_back(result[1].clone());
  result.back()[0].fill_(false);
  return result;
}

TEST(FewQueriesAttention, IsAttentionStepByStep) {
  for (const auto& s : kFewShapes) {
    const auto [q, k, v] = few_inputs(s);
    for (const auto& visible : some_masks(s)) {
      for (const auto& bias : {torch::Tensor(), torch::randn({1, s.n_heads, s.n_queries, s.n_keys})}) {
        for (const auto softcap : {std::optional<double>(), std::optional(1.5)}) {
          const auto found = few_queries_attention(
              q, k, v, {.visible = visible, .bias = bias, .scale = 0.3, .softcap = softcap});
          const auto expected =
              explicit_attention(q.to(torch::kDouble), k.to(torch::kDouble), v.to(torch::kDouble),
                                 {.mask = visible.defined() ? Mask::keep(visible) : Mask(),
                                  .bias = bias.defined() ? bias.to(torch::kDouble) : bias,
                                  .scale = 0.3,
                                  .softcap = softcap})
                  .output;
          ASSERT_EQ(found.sizes(), expected.sizes());
          EXPECT_LE((found - expected).abs().max().item<double>(), 3e-6) << s.n_keys << " keys";
        }
      }
    }
  }
}

TEST(FewQueriesAttention, TakesMinusInfinityAsHidden) {
  const auto [q, k, v] = few_inputs({2, 2, 2, 2, 9, 16, 16});
  const auto visible = torch::rand({2, 1, 2, 9}).gt(0.5);
  auto bias = torch::zeros({2, 1, 2, 9});
  bias.masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
  const auto hidden = few_queries_attention(q, k, v, {.visible = visible}),
             biased = few_queries_attention(q, k, v, {.bias = bias});
  EXPECT_LE((hidden - biased).abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(biased.isfinite().all().item<bool>());
}

TEST(FewQueriesAttention, ANumberThatIsNoneStays) {
  auto [q, k, v] = few_inputs({2, 2, 2, 1, 40, 16, 16});
  k[1][0][5].fill_(std::numeric_limits<double>::quiet_NaN());
  const auto found = few_queries_attention(q, k, v, {});
  EXPECT_TRUE(found[1][0].isnan().all().item<bool>());
  EXPECT_TRUE(found[0].isfinite().all().item<bool>());
}

TEST(FewQueriesAttention, ARowDoesNotDependOnOthersNorOnHiddenKeysNorOnThreads) {
  const int threads = at::get_num_threads();
  for (const auto& s : kFewShapes) {
    const auto [q, k, v] = few_inputs(s);
    const auto bias = torch::randn({1, s.n_heads, s.n_queries, s.n_keys});
    const auto lengths = torch::randint(1, s.n_keys + 1, {s.batch});
    const auto visible = torch::arange(s.n_keys).lt(lengths.view({-1, 1, 1, 1}));
    const auto together =
        few_queries_attention(q, k, v, {.visible = visible.expand({-1, 1, s.n_queries, -1}), .bias = bias});
    for (const int n : {1, 2, 3}) {
      at::set_num_threads(n);
      for (int64_t b = 0; b < s.batch; ++b) {
        const auto length = lengths[b].item<int64_t>();
        const auto one = [&](const torch::Tensor& x) { return x.narrow(0, b, 1); };
        const auto alone = few_queries_attention(one(q), one(k).narrow(2, 0, length).contiguous(),
                                                 one(v).narrow(2, 0, length).contiguous(),
                                                 {.bias = bias.narrow(3, 0, length)});
        EXPECT_TRUE(torch::equal(alone, one(together))) << "row " << b << ", " << n << " threads";
      }
    }
    at::set_num_threads(threads);
  }
}

TEST(FewQueriesAttention, IsNotForManyQueriesOrGradients) {
  const auto [q, k, v] = few_inputs({1, 2, 1, 3, 9, 16, 16});
  EXPECT_TRUE(has_few_queries_attention(q, k, v));
  EXPECT_FALSE(has_few_queries_attention(torch::zeros({1, 2, 8, 16}), k, v));
  EXPECT_FALSE(has_few_queries_attention(q.to(torch::kDouble), k.to(torch::kDouble), v.to(torch::kDouble)));
  EXPECT_FALSE(has_few_queries_attention(q.detach().requires_grad_(), k, v));
  EXPECT_THROW(few_queries_attention(torch::zeros({1, 2, 8, 16}), k, v, {}), c10::Error);
}

}  // namespace
}  // namespace zoo
