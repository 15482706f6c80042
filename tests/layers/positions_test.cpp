#include "layers/positions/positions.h"

#include <atomic>
#include <barrier>
#include <deque>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/positions/position_bias.h"
#include "layers/positions/rotary.h"

namespace zoo {
namespace {

PositionRange range_of(int64_t first, int64_t count, const torch::Tensor& starts = {}) {
  return {.first = first, .count = count, .starts = starts};
}

TEST(PositionRange, CountsOnFromTheCacheAndFromEachRowsFirstToken) {
  EXPECT_TRUE(torch::equal(range_of(3, 2).ids(torch::kCPU), torch::tensor({3, 4})));
  const auto padded = range_of(1, 3, torch::tensor({0, 2})).ids(torch::kCPU);
  EXPECT_TRUE(torch::equal(padded, torch::tensor({{1, 2, 3}, {0, 0, 1}})));
  EXPECT_EQ(range_of(3, 2).end(), 5);
}

TEST(Sinusoids, AreSineAndCosineOfOneAngleAPair) {
  const auto positions = torch::arange(50);
  for (const int64_t width : {6, 7, 1}) {  // odd widths end in a sine
    const auto encoding = sinusoidal_positions(positions, width);
    EXPECT_EQ(encoding.sizes(), (torch::IntArrayRef{50, width}));
    EXPECT_TRUE(torch::allclose(encoding.select(1, 0), torch::sin(positions.to(torch::kFloat)), 1e-5, 1e-5));
    for (int64_t i = 0; i + 1 < width; i += 2) {
      const auto sine = encoding.select(1, i), cosine = encoding.select(1, i + 1);
      EXPECT_TRUE(torch::allclose(sine.square() + cosine.square(), torch::ones({50}), 0, 1e-5));
    }
  }
  EXPECT_EQ(sinusoidal_positions(positions.view({5, 10}), 6).sizes(), (torch::IntArrayRef{5, 10, 6}));
}

// The threads of a training go through the same model, each with a batch of its own length.
TEST(PositionTable, GrowsUnderTheHandsOfSeveralThreads) {
  constexpr int kTables = 5000;
  constexpr int64_t kThreads = 4;
  std::deque<PositionTable> tables;
  for (int i = 0; i < kTables; ++i) tables.emplace_back([](const auto& positions) { return positions * 2; });
  std::atomic<int> n_wrong = 0;
  std::barrier all_there(kThreads);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, length = 100 + 50 * t] {
      for (auto& table : tables) {
        all_there.arrive_and_wait();
        try {
          const auto rows = table.rows(range_of(3, length), torch::kCPU);
          if (!rows.equal(torch::arange(3, 3 + length) * 2)) ++n_wrong;
        } catch (const c10::Error&) {
          ++n_wrong;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(n_wrong, 0);
}

// Recorded steps hold addresses, not tensors.
TEST(PositionTable, KeepsWhatItHasOutgrown) {
  PositionTable table([](const auto& positions) { return positions * 2; });
  const auto* const data = table.rows(range_of(0, 10), torch::kCPU).const_data_ptr<int64_t>();
  table.rows(range_of(0, 1000), torch::kCPU);
  const auto elsewhere = torch::full({64}, -1, torch::kInt64);  // would take the place if it were free
  EXPECT_NE(elsewhere.const_data_ptr<int64_t>(), data);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(data[i], 2 * i);
}

// The point of rotary positions: moving query and key together changes no score.
TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  torch::manual_seed(1);
  const auto q = torch::randn({1, 1, 1, 16}), k = torch::randn({1, 1, 1, 16});
  for (const auto layout : {RotaryLayout::interleaved, RotaryLayout::half}) {
    for (const int64_t width : {16, 8}) {
      Rotary rotary(RotaryOptions(16).width(width).layout(layout));
      const auto score = [&](int64_t query, int64_t key) {
        const auto a = rotary(range_of(query, 1), torch::kCPU).apply(q);
        const auto b = rotary(range_of(key, 1), torch::kCPU).apply(k);
        return (a * b).sum().item<double>();
      };
      EXPECT_NEAR(score(7, 3), score(57, 53), 1e-4);
      EXPECT_GT(std::abs(score(7, 3) - score(7, 4)), 1e-3);
      const auto turned = rotary(range_of(9, 1), torch::kCPU).apply(q);
      EXPECT_NEAR(turned.norm().item<double>(), q.norm().item<double>(), 1e-5);
      EXPECT_TRUE(torch::equal(turned.narrow(-1, width, 16 - width), q.narrow(-1, width, 16 - width)));
    }
  }
}

TEST(Rotary, LeftPaddedRowsCountFromTheirFirstToken) {
  Rotary rotary(RotaryOptions(8));
  const auto x = torch::randn({2, 3, 5, 8});
  const auto y = rotary(range_of(0, 5, torch::tensor({0, 2})), torch::kCPU).apply(x);
  const auto plain = rotary(range_of(0, 5), torch::kCPU);
  EXPECT_TRUE(torch::equal(y[0], plain.apply(x)[0]));
  const auto shifted = rotary(range_of(0, 3), torch::kCPU).apply(x.narrow(2, 2, 3));
  EXPECT_TRUE(torch::equal(y[1].narrow(1, 2, 3), shifted[1]));
}

TEST(Rotary, TableGrowsOnDemand) {
  Rotary grown(RotaryOptions(8)), fresh(RotaryOptions(8));
  grown(range_of(0, 10), torch::kCPU);
  const auto a = grown(range_of(300, 7), torch::kCPU), b = fresh(range_of(300, 7), torch::kCPU);
  EXPECT_TRUE(torch::equal(a.cos, b.cos));
  EXPECT_TRUE(torch::equal(a.sin, b.sin));
  EXPECT_TRUE(fresh->parameters().empty());
}

TEST(Rotary, RejectsWidthsThatHaveNoPairs) {
  EXPECT_THROW(Rotary(RotaryOptions(7)), c10::Error);
  EXPECT_THROW(Rotary(RotaryOptions(8).width(3)), c10::Error);
  EXPECT_THROW(Rotary(RotaryOptions(8).width(10)), c10::Error);
}

TEST(Rotary, AnglesMustBeThoseOfThePositions) {
  const auto table = Rotary(RotaryOptions(16))(range_of(0, 4), torch::kCPU);
  EXPECT_THROW(table.apply(torch::zeros({1, 1, 64, 16})), c10::Error);
  EXPECT_THROW(table.apply(torch::zeros({1, 1, 4, 8})), c10::Error);
}

TEST(T5Bias, NeedsBucketsForBothDirections) {
  EXPECT_THROW(T5Bias(T5BiasOptions(2).n_buckets(3)), c10::Error);
  EXPECT_NO_THROW(T5Bias(T5BiasOptions(2).n_buckets(4)));
  EXPECT_NO_THROW(T5Bias(T5BiasOptions(2).n_buckets(2).direction(Direction::causal)));
}

TEST(Alibi, FallsWithTheDistance) {
  const auto bias = alibi_bias(alibi_slopes(8), range_of(0, 4));
  EXPECT_EQ(bias.sizes(), (torch::IntArrayRef{1, 8, 4, 4}));
  EXPECT_FLOAT_EQ(bias[0][0][3][1].item<float>(), -0.5F * 2);  // slopes 1/2, 1/4, … for 8 heads
  EXPECT_FLOAT_EQ(bias[0][7][3][0].item<float>(), -3.0F / 256);
  EXPECT_EQ(bias.diagonal(0, 2, 3).abs().max().item<float>(), 0);
}

// A block of new queries over a cache gets the last rows of the whole sequence's bias.
TEST(ScoreBias, OfABlockIsTheLastRowsOfTheWhole) {
  const auto slopes = alibi_slopes(3);
  EXPECT_TRUE(
      torch::equal(alibi_bias(slopes, range_of(6, 2)), alibi_bias(slopes, range_of(0, 8)).narrow(2, 6, 2)));
  for (const auto direction : {Direction::causal, Direction::bidirectional}) {
    T5Bias t5(T5BiasOptions(3).direction(direction).n_buckets(8).max_distance(6));
    EXPECT_TRUE(torch::equal(t5(range_of(6, 2)), t5(range_of(0, 8)).narrow(2, 6, 2)));
  }
}

TEST(T5Buckets, AreExactNearByAndOneBucketFarAway) {
  const auto distances = torch::tensor({0, -1, -2, -3, -15, -127, -128, -5000, 4});
  const auto causal = t5_buckets(distances, Direction::causal, 32, 128);
  EXPECT_TRUE(torch::equal(causal, torch::tensor({0, 1, 2, 3, 15, 31, 31, 31, 0})));
  const auto both = t5_buckets(torch::tensor({0, 1, -1, 5000, -5000}), Direction::bidirectional, 32, 128);
  EXPECT_TRUE(torch::equal(both, torch::tensor({0, 17, 1, 31, 15})));
}

}  // namespace
}  // namespace zoo
