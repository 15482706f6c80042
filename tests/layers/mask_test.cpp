#include "layers/attention/mask.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

torch::Tensor materialized(const Mask& mask, int64_t n_queries, int64_t n_keys) {
  return mask.materialize(n_queries, n_keys, torch::kCPU);
}

torch::Tensor lower_triangle(int64_t n) { return torch::ones({n, n}, torch::kBool).tril(); }

TEST(Mask, DefaultShowsEverything) {
  EXPECT_TRUE(Mask().is_trivial());
  EXPECT_FALSE(materialized(Mask(), 3, 4).defined());
}

TEST(Mask, CausalSeesThePastAndItself) {
  const auto mask = Mask::causal();
  EXPECT_TRUE(mask.is_only_causal());
  EXPECT_TRUE(torch::equal(materialized(mask, 4, 4).squeeze(), lower_triangle(4)));
}

// New queries over a cache are the last ones of the sequence.
TEST(Mask, CausalAlignsTheLastQueryWithTheLastKey) {
  EXPECT_TRUE(torch::equal(materialized(Mask::causal(), 2, 5).squeeze(), lower_triangle(5).narrow(0, 3, 2)));
  EXPECT_FALSE(materialized(Mask::causal(), 1, 5).defined());
}

TEST(Mask, LengthsHideTheRight) {
  const auto lengths = materialized(Mask::lengths(torch::tensor({4, 2})), 3, 4);
  EXPECT_EQ(lengths.sizes(), (torch::IntArrayRef{2, 1, 1, 4}));
  EXPECT_TRUE(torch::equal(lengths.squeeze().to(torch::kInt64), torch::tensor({{1, 1, 1, 1}, {1, 1, 0, 0}})));
  EXPECT_TRUE(Mask::lengths({}).is_trivial());
}

// Rows of unequal length: each query sees keys up to its own position in its row, wherever the last key is.
TEST(Mask, CausalFromOffsetsSeesUpToEachRowsOwnPosition) {
  const auto mask = Mask::causal(torch::tensor({0, 3}));
  EXPECT_FALSE(mask.is_trivial());
  EXPECT_FALSE(mask.is_only_causal());
  const auto visible = materialized(mask, 3, 6);
  EXPECT_EQ(visible.sizes(), (torch::IntArrayRef{2, 1, 3, 6}));
  EXPECT_TRUE(torch::equal(visible.squeeze(1).to(torch::kInt64),
                           torch::tensor({{{1, 0, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}, {1, 1, 1, 0, 0, 0}},
                                          {{1, 1, 1, 1, 0, 0}, {1, 1, 1, 1, 1, 0}, {1, 1, 1, 1, 1, 1}}})));
  // One new query sees all keys of the longest row, but no more than its own in the others.
  const auto step = materialized(mask, 1, 4).view({2, 4});
  EXPECT_TRUE(torch::equal(step.to(torch::kInt64), torch::tensor({{1, 0, 0, 0}, {1, 1, 1, 1}})));
  // If all rows end at the last key, the mask is the plain causal mask.
  const auto at_the_end = materialized(Mask::causal(torch::tensor({3, 3})), 2, 5);
  EXPECT_TRUE(torch::equal(at_the_end, materialized(Mask::causal(), 2, 5).expand({2, 1, 2, 5})));
}

TEST(Mask, BothPolaritiesSayTheSame) {
  torch::manual_seed(1);
  const auto visible = torch::rand({2, 3, 4}).lt(0.5);
  const auto expected = visible.unsqueeze(1);
  EXPECT_TRUE(torch::equal(materialized(Mask::keep(visible), 3, 4), expected));
  EXPECT_TRUE(torch::equal(materialized(Mask::keep(visible.to(torch::kInt64)), 3, 4), expected));
  EXPECT_TRUE(torch::equal(materialized(Mask::block(visible.logical_not()), 3, 4), expected));
  EXPECT_TRUE(
      torch::equal(materialized(Mask::block(visible.logical_not().to(torch::kFloat)), 3, 4), expected));
}

TEST(Mask, AllShapesOfExplicitMasksBroadcast) {
  constexpr int64_t kBatch = 2, kQueries = 3, kKeys = 3;
  const auto triangle = lower_triangle(kQueries);
  const auto padding = torch::tensor({{1, 1, 1}, {1, 0, 0}}).to(torch::kBool);
  const std::vector<int64_t> full{kBatch, 5, kQueries, kKeys};
  const auto expanded = [&](const Mask& mask) { return materialized(mask, kQueries, kKeys).expand(full); };

  const auto causal = expanded(Mask::causal());
  EXPECT_TRUE(torch::equal(expanded(Mask::keep(triangle)), causal));                     // (T, T)
  EXPECT_TRUE(torch::equal(expanded(Mask::keep(triangle.view({1, 1, 3, 3}))), causal));  // (1, 1, T, T)
  EXPECT_TRUE(torch::equal(expanded(Mask::keep(triangle.expand({2, 3, 3}))), causal));   // (B, T, S)
  EXPECT_TRUE(torch::equal(expanded(Mask::keep(padding.view({2, 1, 1, 3}))),             // (B, 1, 1, S)
                           expanded(Mask::lengths(torch::tensor({3, 1})))));
  for (const auto& shape : {std::vector<int64_t>{3}, {1, 1, 1, 3, 3}}) {
    EXPECT_THROW(Mask::keep(torch::ones(shape)), c10::Error);
  }
}

TEST(Mask, CombinationShowsWhatBothShow) {
  torch::manual_seed(2);
  constexpr int64_t kQueries = 4, kKeys = 6;
  const auto pattern = torch::rand({3, kQueries, kKeys}).lt(0.7);
  const auto a = torch::tensor({6, 6, 3}), b = torch::tensor({4, 6, 6});   // lengths
  const auto c = torch::tensor({5, 1, 5}), d = torch::tensor({2, 4, -1});  // offsets
  const auto mask = Mask::causal() & Mask::lengths(a) & Mask::causal(c) & Mask::keep(pattern) &
                    Mask::lengths(b) & Mask::causal(d);
  auto expected = torch::zeros({3, kQueries, kKeys}, torch::kBool);
  for (int64_t row = 0; row < 3; ++row) {
    const int64_t end = std::min(a[row].item<int64_t>(), b[row].item<int64_t>());
    const int64_t offset = std::min(c[row].item<int64_t>(), d[row].item<int64_t>());
    for (int64_t i = 0; i < kQueries; ++i) {
      for (int64_t j = 0; j < kKeys; ++j) {
        const bool seen =
            j <= i + (kKeys - kQueries) && j <= i + offset && j < end && pattern[row][i][j].item<bool>();
        expected.index_put_({row, i, j}, seen);
      }
    }
  }
  EXPECT_TRUE(torch::equal(materialized(mask, kQueries, kKeys).squeeze(1), expected));
}

TEST(Mask, SharedIsTheSameMaskAndMadeOnce) {
  const auto mask = (Mask::causal() & Mask::lengths(torch::tensor({4, 2}))).shared();
  const auto first = mask.materialize(3, 4, torch::kCPU), again = Mask(mask).materialize(3, 4, torch::kCPU);
  const auto expected =
      (Mask::causal() & Mask::lengths(torch::tensor({4, 2}))).materialize(3, 4, torch::kCPU);
  EXPECT_TRUE(torch::equal(first, expected));
  EXPECT_EQ(first.data_ptr(), again.data_ptr());
  EXPECT_TRUE(Mask::causal().shared().is_only_causal());  // fused kernels need no tensor
  // A layer with other keys gets a mask of its own.
  EXPECT_TRUE(
      torch::equal(mask.materialize(2, 3, torch::kCPU),
                   (Mask::causal() & Mask::lengths(torch::tensor({4, 2}))).materialize(2, 3, torch::kCPU)));
}

TEST(Mask, SharedMasksDoNotLeakIntoMasksThatAreMadeFromThem) {
  const auto causal = Mask::causal().shared();
  causal.materialize(4, 4, torch::kCPU);
  const auto lengths = torch::tensor({4, 2}), offsets = torch::tensor({1, 0});
  EXPECT_TRUE(torch::equal(materialized(causal & Mask::lengths(lengths), 4, 4),
                           materialized(Mask::causal() & Mask::lengths(lengths), 4, 4)));
  EXPECT_TRUE(
      torch::equal(materialized(causal.from(offsets), 4, 4), materialized(Mask::causal(offsets), 4, 4)));
}

}  // namespace
}  // namespace zoo
