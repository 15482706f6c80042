#include "layers/attention/positions.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "layers/attention/position_bias.h"
#include "layers/attention/rotary.h"
#include "layers/found_positions.h"

namespace zoo {
namespace {

using Numbers = std::vector<int64_t>;

/// Row b reads counts[b] tokens from position before[b] on.
PositionRange range_by_row(const Numbers& before, const Numbers& counts) {
  return {before, counts, *std::ranges::max_element(counts), torch::kCPU};
}

TEST(PositionRange, CountsOnFromWhatAllRowsHaveRead) {
  const PositionRange range(3, 2);
  EXPECT_TRUE(torch::equal(range.ids(torch::kCPU), torch::tensor({3, 4})));
  EXPECT_EQ(range.first(), 3);
  EXPECT_EQ(range.count(), 2);
  EXPECT_EQ(range.n_keys(), 5);
  EXPECT_EQ(range.n_columns(), 5);
  EXPECT_FALSE(range.differs_by_row());
  for (const auto& tensor : {range.offsets(), range.counts(), range.columns()})
    EXPECT_FALSE(tensor.defined());
}

TEST(PositionRange, CountsOnFromWhatEachRowHasRead) {
  const auto range = range_by_row({1, 4, 0}, {3, 1, 0});
  EXPECT_TRUE(range.differs_by_row());
  EXPECT_EQ(range.first(), 4);
  EXPECT_EQ(range.count(), 3);
  EXPECT_EQ(range.n_keys(), 5);     // the last token of any row is the one at 4
  EXPECT_EQ(range.n_columns(), 7);  // behind it the second row is padded by two columns
  EXPECT_TRUE(torch::equal(range.offsets(), torch::tensor({1, 4, 0})));
  EXPECT_TRUE(torch::equal(range.counts(), torch::tensor({3, 1, 0})));
  EXPECT_TRUE(torch::equal(range.columns(), torch::tensor({{1, 2, 3}, {4, 5, 6}, {0, 1, 2}})));
  // No position is larger than the position of the last token, because tables may end there.
  EXPECT_TRUE(torch::equal(range.ids(torch::kCPU), torch::tensor({{1, 2, 3}, {4, 4, 4}, {0, 1, 2}})));
}

TEST(PositionRange, DiffersByRowWherePlacesOrCountsDo) {
  const auto places = range_by_row({2, 5}, {2, 2}), counts = range_by_row({2, 2}, {2, 1});
  EXPECT_TRUE(places.differs_by_row());
  EXPECT_FALSE(places.counts().defined());  // all columns are tokens
  EXPECT_TRUE(torch::equal(places.ids(torch::kCPU), torch::tensor({{2, 3}, {5, 6}})));
  EXPECT_TRUE(counts.differs_by_row());
  EXPECT_TRUE(torch::equal(counts.counts(), torch::tensor({2, 1})));
  EXPECT_EQ(counts.n_keys(), 4);

  const auto equal = range_by_row({2, 2}, {3, 3});
  EXPECT_FALSE(equal.differs_by_row());
  EXPECT_TRUE(torch::equal(equal.ids(torch::kCPU), torch::tensor({2, 3, 4})));
  EXPECT_EQ(equal.n_keys(), 5);
  // All rows padded.
  EXPECT_TRUE(PositionRange(Numbers{2, 2}, Numbers{3, 3}, 4, torch::kCPU).differs_by_row());
}

TEST(PositionRange, NeedsThePlaceOfEveryRow) {
  EXPECT_THROW(PositionRange(Numbers{1, 2}, Numbers{1}, 1, torch::kCPU), c10::Error);
  EXPECT_THROW(PositionRange(Numbers{}, Numbers{}, 1, torch::kCPU), c10::Error);
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

// Row by row: the first half of a vector encodes the place's row, the second half its column.
TEST(GridPositions, AreSinusoidsOfRowAndColumn) {
  constexpr int64_t kRows = 3, kColumns = 5;
  for (const auto& [width, period] : {std::pair<int64_t, double>{12, 10000.0}, {12, 50.0}, {6, 10000.0}}) {
    const auto encoding = grid_positions(kRows, kColumns, width, period);
    EXPECT_EQ(encoding.sizes(), (torch::IntArrayRef{kRows * kColumns, width}));
    EXPECT_EQ(encoding.scalar_type(), torch::kFloat);
    const auto along = sinusoidal_positions(torch::arange(kColumns), width / 2, period);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        const auto place = encoding[row * kColumns + column];
        EXPECT_TRUE(torch::equal(place.narrow(0, 0, width / 2), along[row])) << row << ", " << column;
        EXPECT_TRUE(torch::equal(place.narrow(0, width / 2, width / 2), along[column]))
            << row << ", " << column;
      }
    }
  }
  EXPECT_TRUE(torch::equal(grid_positions(2, 2, 8), grid_positions(2, 2, 8, 10000.0)));
  EXPECT_THROW(grid_positions(2, 2, 7), c10::Error);
}

// The threads of a training use the same model, each with a batch of another length.
TEST(Sinusoids, InHalvesAreTheSameNumbers) {
  const auto positions = torch::arange(9);
  for (const int64_t width : {6, 7, 1}) {
    const auto halves = sinusoidal_positions(positions, width, 10000, SinusoidLayout::half);
    const auto usual = sinusoidal_positions(positions, width);
    const int64_t n_sines = (width + 1) / 2;
    for (int64_t i = 0; i < width; ++i) {
      const int64_t place = i % 2 == 0 ? i / 2 : n_sines + i / 2;
      EXPECT_TRUE(halves.select(1, place).equal(usual.select(1, i))) << width << " " << i;
    }
  }
}

// M2M100SinusoidalPositionalEmbedding: the rates of six numbers are 1, 1/100 and 1/10,000.
TEST(Sinusoids, OfClosedHalvesEndAtTheBase) {
  const auto found = sinusoidal_positions(torch::tensor({7}), 6, 10000, SinusoidLayout::half_closed)[0];
  const auto angles = torch::tensor({7.0, 0.07, 0.0007}, torch::kFloat64);
  EXPECT_TRUE(torch::allclose(found.to(torch::kFloat64), torch::cat({angles.sin(), angles.cos()}), 0, 1e-6));
  EXPECT_THROW(sinusoidal_positions(torch::arange(3), 7, 10000, SinusoidLayout::half_closed), c10::Error);
  EXPECT_THROW(sinusoidal_positions(torch::arange(3), 2, 10000, SinusoidLayout::half_closed), c10::Error);
}

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
          const auto rows = table.rows(PositionRange(3, length), torch::kCPU);
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

TEST(PositionTable, HasARowForEveryPositionOfEachRow) {
  PositionTable table([](const auto& positions) { return torch::stack({positions, positions * 2}, -1); });
  const auto range = range_by_row({90, 3}, {1, 2});
  const auto rows = table.rows(range, torch::kCPU), ids = range.ids(torch::kCPU);
  EXPECT_EQ(rows.sizes(), (torch::IntArrayRef{2, 2, 2}));
  EXPECT_TRUE(torch::equal(rows, torch::stack({ids, ids * 2}, -1)));
}

// A recorded CUDA graph holds addresses, not tensors.
TEST(PositionTable, KeepsWhatItHasOutgrown) {
  PositionTable table([](const auto& positions) { return positions * 2; });
  const auto* const data = table.rows(PositionRange(0, 10), torch::kCPU).const_data_ptr<int64_t>();
  table.rows(PositionRange(0, 1000), torch::kCPU);
  const auto elsewhere = torch::full({64}, -1, torch::kInt64);  // would reuse freed memory
  EXPECT_NE(elsewhere.const_data_ptr<int64_t>(), data);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(data[i], 2 * i);
}

// With rotary positions, moving query and key together changes no score.
TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  torch::manual_seed(1);
  const auto q = torch::randn({1, 1, 1, 16}), k = torch::randn({1, 1, 1, 16});
  for (const auto layout : {RotaryLayout::interleaved, RotaryLayout::half}) {
    for (const int64_t width : {16, 8}) {
      Rotary rotary(RotaryOptions(16).width(width).layout(layout));
      const auto score = [&](int64_t query, int64_t key) {
        const auto a = rotary(PositionRange(query, 1), torch::kCPU).apply(q);
        const auto b = rotary(PositionRange(key, 1), torch::kCPU).apply(k);
        return (a * b).sum().item<double>();
      };
      EXPECT_NEAR(score(7, 3), score(57, 53), 1e-4);
      EXPECT_GT(std::abs(score(7, 3) - score(7, 4)), 1e-3);
      const auto turned = rotary(PositionRange(9, 1), torch::kCPU).apply(q);
      EXPECT_NEAR(turned.norm().item<double>(), q.norm().item<double>(), 1e-5);
      EXPECT_TRUE(torch::equal(turned.narrow(-1, width, 16 - width), q.narrow(-1, width, 16 - width)));
    }
  }
}

// "NTK-aware" scaling: the first pair turns as before, the last one slower by the factor, as with linear
// scaling.
TEST(Rotary, ScalingByThetaSlowsTheLastPairByTheFactor) {
  constexpr double factor = 3;
  for (const int64_t width : {16, 8}) {
    const auto options = RotaryOptions(16).width(width);
    const auto rates = rotary_rates(options);
    const auto scaled = rotary_rates(RotaryOptions(options).scaling(RotaryScaling::ntk).factor(factor));
    EXPECT_FLOAT_EQ(scaled[0].item<float>(), rates[0].item<float>());
    EXPECT_FLOAT_EQ(scaled[-1].item<float>(), (rates[-1] / factor).item<float>());
  }
}

TEST(Rotary, RowsCountFromWhatTheyHaveRead) {
  Rotary rotary(RotaryOptions(8));
  const auto x = torch::randn({2, 3, 5, 8});
  const auto y = rotary(range_by_row({0, 4}, {5, 3}), torch::kCPU).apply(x);
  EXPECT_TRUE(torch::equal(y[0], rotary(PositionRange(0, 5), torch::kCPU).apply(x)[0]));
  const auto later = rotary(PositionRange(4, 3), torch::kCPU).apply(x.narrow(2, 0, 3));
  EXPECT_TRUE(torch::equal(y[1].narrow(1, 0, 3), later[1]));
}

TEST(Rotary, TableGrowsOnDemand) {
  Rotary grown(RotaryOptions(8)), fresh(RotaryOptions(8));
  grown(PositionRange(0, 10), torch::kCPU);
  const auto a = grown(PositionRange(300, 7), torch::kCPU), b = fresh(PositionRange(300, 7), torch::kCPU);
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
  const auto table = Rotary(RotaryOptions(16))(PositionRange(0, 4), torch::kCPU);
  EXPECT_THROW(table.apply(torch::zeros({1, 1, 64, 16})), c10::Error);
  EXPECT_THROW(table.apply(torch::zeros({1, 1, 4, 8})), c10::Error);
}

TEST(T5Bias, NeedsBucketsForBothDirections) {
  EXPECT_THROW(T5Bias(T5BiasOptions(2).n_buckets(3)), c10::Error);
  EXPECT_NO_THROW(T5Bias(T5BiasOptions(2).n_buckets(4)));
  EXPECT_NO_THROW(T5Bias(T5BiasOptions(2).n_buckets(2).direction(Direction::causal)));
}

// On a grid of 2 × 3 behind a class token: 3 × 5 distances, then those of the class token.
TEST(GridBias, IsByTheDistanceInRowsAndColumns) {
  const GridShape grid{.rows = 2, .columns = 3, .n_before = 1};
  EXPECT_EQ(grid.n_distances(), 18);
  const auto distances = grid_distances(grid);
  const auto row = [&](int64_t query, int64_t key) { return distances[query][key].item<int64_t>(); };
  EXPECT_EQ(row(1, 1), 7);  // in the middle of the 15
  EXPECT_EQ(row(2, 1), 8);  // one column further on
  EXPECT_EQ(row(4, 1), 12);
  EXPECT_EQ(row(1, 6), 0);
  EXPECT_EQ(row(6, 1), 14);
  EXPECT_EQ(row(5, 3), row(4, 2));
  EXPECT_EQ(row(0, 3), 15);
  EXPECT_EQ(row(3, 0), 16);
  EXPECT_EQ(row(0, 0), 17);
  EXPECT_EQ(grid_distances({.rows = 2, .columns = 3}).max().item<int64_t>(), 14);
}

TEST(GridBias, IsForOneSize) {
  GridBiasImpl bias(GridBiasOptions(2, {.rows = 2, .columns = 3, .n_before = 1}));
  EXPECT_EQ(bias.at(PositionRange(0, 7), torch::kCPU).sizes(), (torch::IntArrayRef{1, 2, 7, 7}));
  EXPECT_THROW(bias.at(PositionRange(0, 8), torch::kCPU), DataError);
}

// The definitions of wav2vec 2.0: a kernel of four places reads two before and one behind.
TEST(ConvolutionalPositions, ReadTheirNeighbours) {
  torch::manual_seed(1);
  constexpr int64_t kPlace = 5;
  for (const int64_t kernel_size : {4, 3, 1}) {
    ConvolutionalPositionsImpl positions(ConvolutionalPositionsOptions(6).kernel_size(kernel_size).groups(2));
    auto x = torch::randn({1, 11, 6});
    const torch::NoGradGuard no_grad;
    const auto before = positions.forward(x);
    EXPECT_EQ(before.sizes(), x.sizes());
    x[0][kPlace][4] += 1;  // of the second group
    const auto changed = (positions.forward(x) != before)[0];
    for (int64_t t = 0; t < 11; ++t) {
      const bool sees = t - kernel_size / 2 <= kPlace && kPlace < t - kernel_size / 2 + kernel_size;
      EXPECT_EQ(changed[t].narrow(0, 3, 3).any().item<bool>(), sees) << kernel_size << " " << t;
      EXPECT_FALSE(changed[t].narrow(0, 0, 3).any().item<bool>()) << kernel_size << " " << t;
    }
  }
}

TEST(ConvolutionalPositions, WeightsHaveTheNormsOfTheirPlaces) {
  torch::manual_seed(2);
  ConvolutionalPositionsImpl positions(ConvolutionalPositionsOptions(6).kernel_size(4).groups(2));
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::allclose(positions.gain, positions.direction.norm(2, {0, 1})));
  const auto x = torch::randn({2, 9, 6});
  const auto before = positions.forward(x);
  positions.direction.mul_(3);
  EXPECT_TRUE(torch::allclose(positions.forward(x), before, 1e-4, 1e-5)) << "only its direction counts";
  const auto by_hand =
      torch::gelu(torch::conv1d(x.transpose(1, 2), positions.direction / 3, positions.bias, 1, 2, 1, 2));
  EXPECT_TRUE(torch::allclose(before, by_hand.narrow(2, 0, 9).transpose(1, 2), 1e-4, 1e-5));
}

// Padding behind a short row is no part of what its places read.
TEST(ConvolutionalPositions, DoNotReadPadding) {
  torch::manual_seed(3);
  ConvolutionalPositionsImpl positions(ConvolutionalPositionsOptions(6).kernel_size(5).groups(3));
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 7, 6});
  const auto padded = with_found_positions(positions, x, torch::tensor({7, 4}));
  const auto alone = with_found_positions(positions, x.narrow(0, 1, 1).narrow(1, 0, 4), {});
  EXPECT_TRUE(torch::allclose(padded[1].narrow(0, 0, 4), alone[0], 1e-5, 1e-6));
  EXPECT_EQ(padded[1].narrow(0, 4, 3).abs().max().item<float>(), 0);
}

TEST(Alibi, FallsWithTheDistance) {
  const auto bias = alibi_bias(alibi_slopes(8), PositionRange(0, 4));
  EXPECT_EQ(bias.sizes(), (torch::IntArrayRef{1, 8, 4, 4}));
  EXPECT_FLOAT_EQ(bias[0][0][3][1].item<float>(), -0.5F * 2);  // slopes 1/2, 1/4, … for 8 heads
  EXPECT_FLOAT_EQ(bias[0][7][3][0].item<float>(), -3.0F / 256);
  EXPECT_EQ(bias.diagonal(0, 2, 3).abs().max().item<float>(), 0);
}

// Of a number of heads that is no power of two: the slopes of the next smaller one, then every other slope of
// twice as many.
TEST(Alibi, MoreHeadsHaveSlopesBetween) {
  const auto eight = alibi_slopes(8), sixteen = alibi_slopes(16);
  const auto slopes = alibi_slopes(12);
  ASSERT_EQ(slopes.size(0), 12);
  EXPECT_TRUE(torch::equal(slopes.narrow(0, 0, 8), eight));
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_FLOAT_EQ(slopes[8 + i].item<float>(), sixteen[2 * i].item<float>()) << i;
}

// A block of new queries over a cache gets the last rows of the whole sequence's bias.
TEST(ScoreBias, OfABlockIsTheLastRowsOfTheWhole) {
  const auto slopes = alibi_slopes(3);
  EXPECT_TRUE(torch::equal(alibi_bias(slopes, PositionRange(6, 2)),
                           alibi_bias(slopes, PositionRange(0, 8)).narrow(2, 6, 2)));
  for (const auto direction : {Direction::causal, Direction::bidirectional}) {
    T5Bias t5(T5BiasOptions(3).direction(direction).n_buckets(8).max_distance(6));
    EXPECT_TRUE(torch::equal(t5(PositionRange(6, 2)), t5(PositionRange(0, 8)).narrow(2, 6, 2)));
  }
}

// In a batch of rows of unequal length, each row gets the bias of its own positions.
TEST(ScoreBias, OfRowsThatDifferIsThatOfEachRowsPositions) {
  const auto range = range_by_row({6, 3}, {2, 2});
  const auto expect_rows = [](const torch::Tensor& bias, const torch::Tensor& whole) {
    EXPECT_EQ(bias.sizes(), (torch::IntArrayRef{2, 3, 2, 8}));
    EXPECT_TRUE(torch::equal(bias[0], whole[0].narrow(1, 6, 2)));
    EXPECT_TRUE(torch::equal(bias[1], whole[0].narrow(1, 3, 2)));
  };
  const auto slopes = alibi_slopes(3);
  expect_rows(alibi_bias(slopes, range), alibi_bias(slopes, PositionRange(0, 8)));
  for (const auto direction : {Direction::causal, Direction::bidirectional}) {
    T5Bias t5(T5BiasOptions(3).direction(direction).n_buckets(8).max_distance(6));
    expect_rows(t5(range), t5(PositionRange(0, 8)));
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
