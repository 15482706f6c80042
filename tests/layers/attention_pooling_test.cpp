#include "layers/attention_pooling.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

constexpr int64_t kPooledWidth = 8, kPoolingHeads = 2;

AttentionPooling random_pooling() {
  torch::manual_seed(3);
  AttentionPooling pooling(AttentionPoolingOptions(AttentionOptions(kPooledWidth, kPoolingHeads),
                                                   FeedForwardOptions(kPooledWidth, 12),
                                                   NormOptions(kPooledWidth)));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : pooling->parameters()) parameter.normal_(0, 0.5);
  pooling->eval();
  return pooling;
}

// Written out, head by head.
TEST(AttentionPooling, IsWhatAQueryFindsWithAResidualNetwork) {
  const torch::NoGradGuard no_grad;
  auto pooling = random_pooling();
  const auto x = torch::randn({3, 5, kPooledWidth});
  auto& attention = pooling->attention;
  const auto q = attention->q(pooling->query), k = attention->k(x), v = attention->v(x);
  std::vector<torch::Tensor> heads;
  for (int64_t h = 0; h < kPoolingHeads; ++h) {
    const auto part = [h](const torch::Tensor& all) {
      return all.chunk(kPoolingHeads, -1)[static_cast<size_t>(h)];
    };
    const auto scores =
        torch::matmul(part(k), part(q).t()) / std::sqrt(1.0 * kPooledWidth / kPoolingHeads);  // (B, T, 1)
    heads.push_back((scores.softmax(1) * part(v)).sum(1));
  }
  const auto found = attention->out(torch::cat(heads, -1));
  const auto expected = found + pooling->feed_forward(pooling->norm(found));
  EXPECT_TRUE(torch::allclose(pooling(x), expected, 1e-4, 1e-5));
}

TEST(AttentionPooling, TheOrderOfVectorsDoesNotMatter) {
  const torch::NoGradGuard no_grad;
  auto pooling = random_pooling();
  const auto x = torch::randn({2, 6, kPooledWidth});
  EXPECT_TRUE(torch::allclose(pooling(x), pooling(x.flip(1)), 1e-4, 1e-5));
}

}  // namespace
}  // namespace zoo
