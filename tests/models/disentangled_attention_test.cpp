#include "models/mixers/disentangled_attention.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo::testing {
namespace {

constexpr int64_t kModel = 12, kHeads = 3, kHead = 4, kTokens = 9;

DisentangledAttention random_attention(const DisentangledKeys& keys, Projection projection) {
  torch::manual_seed(3);
  RelativeVectorsOptions vectors(keys.buckets > 0 ? keys.buckets : keys.max_distance, kModel);
  if (keys.norm) vectors.norm(NormOptions(kModel));
  DisentangledAttention attention(AttentionOptions(kModel, kHeads).projection(projection),
                                  DisentangledOptions(vectors).keys(keys));
  for (auto& parameter : attention->parameters()) parameter.detach().normal_(0, 0.5);
  attention->eval();
  return attention;
}

std::vector<DisentangledKeys> kinds() {
  return {{.buckets = 6, .max_distance = 9},
          {.buckets = 0, .max_distance = 4, .norm = false},
          {.buckets = 4, .max_distance = 7, .content_to_position = false, .share_keys = false},
          {.buckets = 4, .max_distance = 7, .position_to_content = false, .share_keys = false}};
}

/// Values of transformers' make_log_bucket_position(), from -12 to 12, and beyond the last distance.
TEST(DisentangledAttention, SharesVectorsOfFarDistances) {
  const auto buckets_of = [](const DisentangledKeys& keys, int64_t n) {
    return rows_of_distances(keys, n) - keys.buckets;
  };
  const auto small = buckets_of({.buckets = 6, .max_distance = 9}, 13);
  EXPECT_TRUE(small.narrow(0, 0, 24).equal(torch::tensor(
      {-6, -6, -6, -6, -5, -5, -5, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5}, torch::kLong)))
      << small;
  const auto usual = buckets_of({.buckets = 256, .max_distance = 512}, 601);
  const auto at = [&](int64_t distance) { return usual[distance + 600].item<int64_t>(); };
  EXPECT_EQ(at(-511), -255);
  EXPECT_EQ(at(-300), -207);
  EXPECT_EQ(at(-129), -129);
  EXPECT_EQ(at(127), 127);
  EXPECT_EQ(at(200), 169);
  EXPECT_EQ(at(511), 255);
  EXPECT_EQ(at(600), 255);  // there is no 270th vector
  EXPECT_EQ(at(-600), -256);
}

// Pair by pair, as the formula in the header says.
TEST(DisentangledAttention, IsThatOfThePaper) {
  const torch::NoGradGuard no_grad;
  for (const auto& keys : kinds()) {
    for (const auto projection : {Projection::separate, Projection::fused}) {
      auto attention = random_attention(keys, projection);
      const auto x = torch::randn({2, kTokens, kModel});
      const auto part = [&](const torch::Tensor& from, size_t i) {  // (n, H, Dh)
        const auto mapped = attention->qkv ? attention->qkv->forward_some(from, {.first = i, .count = 1})
                            : i == 0       ? attention->q(from)
                            : i == 1       ? attention->k(from)
                                           : attention->v(from);
        return mapped.view({-1, kHeads, kHead});
      };
      auto vectors = attention->named_parameters()["relative_vectors.table.weight"];
      if (keys.norm) {
        const auto named = attention->named_parameters();
        vectors = torch::layer_norm(vectors, {kModel}, named["relative_vectors.norm.weight"],
                                    named["relative_vectors.norm.bias"], 1e-5);
      }
      const auto of_queries = attention->position_query
                                  ? attention->position_query(vectors).view({-1, kHeads, kHead})
                                  : part(vectors, 0);
      const auto of_keys = attention->position_key
                               ? attention->position_key(vectors).view({-1, kHeads, kHead})
                               : part(vectors, 1);
      const auto rows = rows_of_distances(keys, kTokens);
      const int n_parts = 1 + (keys.content_to_position ? 1 : 0) + (keys.position_to_content ? 1 : 0);
      const auto found = attention(x);
      for (int64_t b = 0; b < 2; ++b) {
        const auto q = part(x[b], 0), k = part(x[b], 1), v = part(x[b], 2);
        auto scores = torch::zeros({kHeads, kTokens, kTokens});
        for (int64_t h = 0; h < kHeads; ++h) {
          for (int64_t i = 0; i < kTokens; ++i) {
            for (int64_t j = 0; j < kTokens; ++j) {
              const auto row = rows[i - j + kTokens - 1].item<int64_t>();
              auto score = q[i][h].dot(k[j][h]);
              if (keys.content_to_position) score = score + q[i][h].dot(of_keys[row][h]);
              if (keys.position_to_content) score = score + of_queries[row][h].dot(k[j][h]);
              scores[h][i][j] = score / std::sqrt(static_cast<double>(kHead * n_parts));
            }
          }
        }
        const auto mixed = torch::matmul(scores.softmax(-1), v.transpose(0, 1));  // (H, T, Dh)
        const auto expected = attention->out(mixed.transpose(0, 1).reshape({kTokens, kModel}));
        EXPECT_TRUE(torch::allclose(found[b], expected, 1e-4, 1e-5)) << (found[b] - expected).abs().max();
      }
    }
  }
}

TEST(DisentangledAttention, HasMapsAndCanBeCopied) {
  const torch::NoGradGuard no_grad;
  auto attention = random_attention(kinds().front(), Projection::separate);
  const auto x = torch::randn({2, kTokens, kModel});
  std::vector<torch::Tensor> maps;
  EXPECT_TRUE(torch::allclose(attention(x), attention(x, {.maps = &maps}), 1e-4, 1e-5));
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_TRUE(torch::allclose(maps[0].sum(-1), torch::ones({2, kHeads, kTokens})));
  DisentangledAttention other(copy_of(attention.ptr()));
  EXPECT_TRUE(torch::equal(other(x), attention(x)));
}

}  // namespace
}  // namespace zoo::testing
