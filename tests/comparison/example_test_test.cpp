// Two models on the same examples.

#include "comparison/statistics/example_test.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace zoo::testing {
namespace {

/// Values around `mean`, and as many weights.
ExampleValues values_around(double mean, size_t n, uint64_t seed) {
  CounterRandom random({seed});
  ExampleValues result{.values = {}, .weights = {}, .inputs = "same"};
  for (size_t i = 0; i < n; ++i) {
    result.values.push_back(mean + random.uniform() + random.uniform() - 1);
    result.weights.push_back(1.0 + static_cast<double>(i % 3));
  }
  return result;
}

TEST(TestOnExamples, TheSameModelIsTheSame) {
  const auto one = values_around(3, 50, 1);
  const auto test = test_on_examples(one, one).value();
  EXPECT_EQ(test.difference, 0);
  EXPECT_EQ(test.p, 1);
  EXPECT_EQ(equivalence_p(test, 0.01), 0);
  EXPECT_EQ(verdict(test, test.p, equivalence_p(test, 0.01), Better::lower), Verdict::same);
}

TEST(TestOnExamples, OtherExamplesAreNotCompared) {
  auto one = values_around(3, 50, 1), other = one;
  other.inputs = "others";
  EXPECT_FALSE(test_on_examples(one, other));
  other = one;
  other.weights[3] += 1;
  EXPECT_FALSE(test_on_examples(one, other));
  EXPECT_FALSE(test_on_examples({{1}, {1}, "same"}, {{2}, {1}, "same"}));
}

/// A ratio's standard error by linearisation, where the bootstrap's must lie.
TEST(TestOnExamples, TheIntervalIsThatOfARatio) {
  const auto one = values_around(3.2, 400, 1), other = values_around(3, 400, 2);
  const auto test = test_on_examples(one, other).value();
  double sum = 0, weight = 0;
  for (size_t i = 0; i < 400; ++i) {
    sum += one.values[i] - other.values[i];
    weight += one.weights[i];
  }
  EXPECT_NEAR(test.difference, sum / weight, 1e-12);
  double squares = 0;
  for (size_t i = 0; i < 400; ++i)
    squares += std::pow(one.values[i] - other.values[i] - sum / weight * one.weights[i], 2);
  const double error = std::sqrt(squares) / weight;
  EXPECT_NEAR(*test.error, error, 0.05 * error);
  EXPECT_NEAR(*test.low, test.difference - 1.96 * error, 0.15 * error);
  EXPECT_NEAR(*test.high, test.difference + 1.96 * error, 0.15 * error);
  EXPECT_LT(*test.p, 0.001);
}

/// McNemar's exact test: 14 examples that only one model has right, 4 that only the other one has.
TEST(TestOnExamples, RightAndWrongIsMcNemarsTest) {
  ExampleValues one{
      .values = std::vector<double>(40, 1), .weights = std::vector<double>(40, 1), .inputs = ""};
  auto other = one;
  for (size_t i = 0; i < 14; ++i) other.values[i] = 0;
  for (size_t i = 20; i < 24; ++i) one.values[i] = 0;
  double exact = 0, ways = 1;  // 2 · P(at most 4 of 18)
  for (int k = 0; k <= 4; ++k) {
    exact += 2 * ways / std::exp2(18);
    ways = ways * (18 - k) / (k + 1);
  }
  EXPECT_NEAR(*test_on_examples(one, other)->p, exact, 0.006);
}

/// Labels that are exchanged at random make no difference: at most 5 % of the tests say so at 5 %.
TEST(TestOnExamples, ExchangedLabelsAreRarelyADifference) {
  constexpr int n_tests = 200;
  int n_different = 0;
  for (uint64_t i = 0; i < n_tests; ++i) {
    auto one = values_around(3, 40, 2 * i), other = values_around(3.5, 40, 2 * i + 1);
    CounterRandom random({i, 9});
    for (size_t k = 0; k < 40; ++k)
      if (random.below(2) == 1) std::swap(one.values[k], other.values[k]);
    n_different += *test_on_examples(one, other)->p < kSignificance ? 1 : 0;
  }
  EXPECT_LE(n_different, 18) << "of 200; the 99th percentile of what 5 % give";
  EXPECT_GE(n_different, 3) << "a test that never finds anything";
}

}  // namespace
}  // namespace zoo::testing
