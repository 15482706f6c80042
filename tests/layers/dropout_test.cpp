#include "kernels/dropout.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"

namespace zoo {
namespace {

TEST(Dropout, KeepsTheMeanAndDropsTheShareAskedFor) {
  torch::manual_seed(3);
  constexpr int64_t n = 1'000'003;  // not a multiple of the block size
  const auto ones = torch::ones({n});
  for (const double p : {0.1, 0.3, 0.5, 0.9}) {
    const auto y = dropout(ones, p);
    const double dropped = (y == 0).sum().item<double>() / n;
    EXPECT_NEAR(dropped, p, 5 * std::sqrt(p * (1 - p) / n));
    EXPECT_NEAR(y.max().item<double>(), 1 / (1 - p), 1e-4 / (1 - p));
  }
  EXPECT_TRUE(torch::equal(dropout(ones, 0), ones));
  EXPECT_EQ(dropout(ones, 1).abs().max().item<double>(), 0);
  EXPECT_THROW(dropout(ones, 1.5), c10::Error);
}

// Whether one element is dropped is independent of all others: neighbours, elements a block or a row apart,
// and two calls agree as often as by chance.
TEST(Dropout, ElementsAreIndependent) {
  torch::manual_seed(4);
  constexpr int64_t n = 1 << 20;
  const auto first = dropout(torch::ones({n}), 0.5) == 0, second = dropout(torch::ones({n}), 0.5) == 0;
  const auto agreement = [](const torch::Tensor& a, const torch::Tensor& b) {
    return (a == b).to(torch::kDouble).mean().item<double>();
  };
  const double tolerance = 5 * 0.5 / std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(agreement(first, second), 0.5, tolerance);
  for (const int64_t lag : {1, 2, 16, 32, 64, 128, 256, 2048})
    EXPECT_NEAR(agreement(first.narrow(0, 0, n - lag), first.narrow(0, lag, n - lag)), 0.5, tolerance) << lag;
}

TEST(Dropout, TheBackwardPassDropsTheSameElements) {
  torch::manual_seed(5);
  const auto x = torch::randn({33, 65}).requires_grad_(), y = torch::randn({33, 65}).requires_grad_();
  const auto sum = add_dropout(x, y, 0.3);
  const auto factor = ((sum - x) / y).detach();
  const auto upstream = torch::randn({33, 65});
  sum.backward(upstream);
  EXPECT_TRUE(torch::equal(x.grad(), upstream));
  EXPECT_TRUE(torch::allclose(y.grad(), upstream * factor, 1e-3, 1e-4));
  const auto z = torch::randn({7, 3}).requires_grad_();
  const auto dropped = dropout(z, 0.5);
  dropped.sum().backward();
  EXPECT_TRUE(torch::allclose(z.grad() * z.detach(), dropped.detach()));
}

TEST(Dropout, OtherTypesAndLayouts) {
  for (const auto type : {torch::kDouble, torch::kBFloat16}) {
    const RandomScope random({1});
    const auto y = dropout(torch::ones({5, 40}, type), 0.5);
    EXPECT_EQ(y.scalar_type(), type);
    const RandomScope again({1});
    EXPECT_TRUE(torch::equal(y.to(torch::kFloat), dropout(torch::ones({5, 40}), 0.5)));
  }
  const RandomScope random({2});
  const auto transposed = dropout(torch::ones({40, 5}).t(), 0.5);
  const RandomScope again({2});
  EXPECT_TRUE(torch::equal(transposed, dropout(torch::ones({5, 40}), 0.5)));
  // Sums of two types, as in mixed precision.
  EXPECT_EQ(add_dropout(torch::ones({4}), torch::ones({4}, torch::kBFloat16), 0.5).scalar_type(),
            torch::kFloat);
}

// Rows 2 and 3 of a step lose the same elements with others and alone; so do heads of attention weights for
// any number of queries.
TEST(Dropout, OfARowDoesNotDependOnTheOtherRows) {
  const RowSeed seed{.seed = 7};
  const auto tensor = [](std::vector<int64_t> sizes) { return torch::ones(sizes); };
  const auto whole = dropout(tensor({4, 5, 41}), 0.5, seed), part = dropout(tensor({2, 5, 41}), 0.5, {7, 2});
  EXPECT_TRUE(torch::equal(whole.narrow(0, 2, 2), part));
  EXPECT_FALSE(torch::equal(whole.narrow(0, 0, 2), part));
  const auto weights = dropout(tensor({4, 3, 6, 41}), 0.5, seed);
  EXPECT_TRUE(
      torch::equal(weights.narrow(0, 2, 2).narrow(2, 0, 2), dropout(tensor({2, 3, 2, 41}), 0.5, {7, 2})));
  EXPECT_FALSE(torch::equal(weights.select(1, 0), weights.select(1, 1)));
  const auto drawn = [&](int64_t first, int64_t n) {
    const RandomScope random({8});
    const RowScope rows(first);
    return dropout(tensor({n, 200}), 0.5);
  };
  EXPECT_TRUE(torch::equal(drawn(0, 5).narrow(0, 3, 2), drawn(3, 2)));
  EXPECT_EQ(first_row(), 0);
}

TEST(RandomScope, GivesAThreadNumbersOfItsOwn) {
  torch::manual_seed(6);
  uint64_t inner = 0;
  {
    const RandomScope scope({7, 1});
    inner = draw_seed();
    {
      const RandomScope nested({8});
      EXPECT_NE(draw_seed(), inner);
    }
    EXPECT_NE(draw_seed(), inner);
  }
  const uint64_t outer = draw_seed();
  torch::manual_seed(6);
  EXPECT_EQ(draw_seed(), outer);  // the scope left the default generator alone
  const RandomScope scope({7, 1});
  EXPECT_EQ(draw_seed(), inner);
  const RandomScope other({7, 2});
  EXPECT_NE(draw_seed(), inner);
}

}  // namespace
}  // namespace zoo
