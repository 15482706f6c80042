// Slices of texts by two models: the difference, its interval, and what they say of equal models.

#include "statistics/slice_test.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "comparison/findings/slices.h"
#include "tasks/text/text_slices.h"

namespace zoo::testing {
namespace {

constexpr size_t kExamples = 60;

/// Bits per byte around `level`, whose examples share what is hard for both models.
SliceValues slice(double level, uint64_t seed) {
  CounterRandom hard({1}), own({seed});
  SliceValues values;
  for (size_t i = 0; i < kExamples; ++i) {
    const double bytes = 100 + 50 * hard.uniform();
    values.weights.push_back(bytes);
    values.values.push_back(bytes * (level + 2 * hard.uniform() + 0.2 * own.uniform()));
  }
  return values;
}

TEST(SliceTest, TellsDifferentSlicesFromEqualOnes) {
  const std::vector<SliceValues> one = {slice(2, 5), slice(2, 6), slice(2, 7)},
                                 other = {slice(1.8, 8), slice(2, 9), slice(2, 7)};
  const auto tests = test_on_slices(one, other);
  ASSERT_EQ(tests.size(), 3U);
  EXPECT_NEAR(tests[0]->difference, 0.2, 0.02);
  EXPECT_GT(*tests[0]->low, 0.15);
  EXPECT_LT(*tests[0]->high, 0.25);
  EXPECT_LT(*tests[0]->p, 0.001);
  EXPECT_GT(*tests[1]->p, 0.01);
  EXPECT_LT(*tests[1]->low, 0.01);
  EXPECT_EQ(tests[2]->p, 1.0);
  EXPECT_EQ(tests[2]->difference, 0);
  EXPECT_EQ(tests[2]->high, 0.0);
  EXPECT_EQ(tests[0]->n, static_cast<int64_t>(kExamples));
}

TEST(SliceTest, ComparesRatiosOfUnequalWeights) {
  auto longer = slice(2, 5);
  for (auto& bytes : longer.weights) bytes *= 2;
  for (auto& bits : longer.values) bits *= 2;
  const auto test = test_on_slices({longer}, {slice(2, 5)}).front();
  EXPECT_NEAR(test->difference, 0, 1e-12);
  EXPECT_GT(*test->p, 0.9);
}

TEST(SliceTest, SaysNothingOfSlicesOfOneExample) {
  SliceValues rare{.values = std::vector<double>(kExamples), .weights = std::vector<double>(kExamples)};
  rare.values[3] = 7, rare.weights[3] = 2;
  EXPECT_FALSE(test_on_slices({rare}, {rare}).front());
  rare.values[9] = 5, rare.weights[9] = 2;
  EXPECT_TRUE(test_on_slices({rare}, {rare}).front());
  EXPECT_THROW(test_on_slices({rare}, {}), std::invalid_argument);
  EXPECT_THROW(test_on_slices({rare}, {{.values = {1}, .weights = {1}}}), std::invalid_argument);
}

// Labels that are exchanged at random differ by chance alone.
TEST(SliceTest, FindsFewDifferencesBetweenEqualModels) {
  constexpr int n_comparisons = 40, n_slices = 3;
  int n_wrong = 0;
  for (int i = 0; i < n_comparisons; ++i) {
    std::vector<SliceValues> one, other;
    for (int s = 0; s < n_slices; ++s) {
      const auto seed = static_cast<uint64_t>(100 + 2 * (i * n_slices + s));
      one.push_back(slice(2, seed)), other.push_back(slice(2, seed + 1));
      for (auto* const values : {&one.back(), &other.back()})
        values->values.resize(20), values->weights.resize(20);
    }
    std::vector<std::optional<double>> p;
    for (const auto& test : test_on_slices(one, other)) p.push_back(test->p);
    const auto corrected = corrected_known(Correction::holm, p);
    n_wrong +=
        std::ranges::any_of(corrected, [](const auto& value) { return *value < kSignificance; }) ? 1 : 0;
  }
  EXPECT_LE(n_wrong, 6) << "5 % of 40 comparisons, and what chance adds to it in 99 % of all cases";
}

TEST(SliceTest, DocumentsCountAsTheirSums) {
  const std::vector<SliceValues> one = {slice(2, 1)}, other = {slice(2.1, 2)};
  std::vector<int64_t> documents;
  for (size_t i = 0; i < kExamples; ++i) documents.push_back(static_cast<int64_t>(i / 4));
  const auto sums = [&](const SliceValues& values) {
    SliceValues result{.values = std::vector<double>((kExamples + 3) / 4),
                       .weights = std::vector<double>((kExamples + 3) / 4)};
    for (size_t i = 0; i < kExamples; ++i) {
      result.values[i / 4] += values.values[i];
      result.weights[i / 4] += values.weights[i];
    }
    return result;
  };
  const auto test = test_on_slices(one, other, documents).front().value();
  const auto expected = test_on_slices({sums(one[0])}, {sums(other[0])}).front().value();
  EXPECT_EQ(test.n, expected.n);
  EXPECT_EQ(test.p, expected.p);
  EXPECT_EQ(test.low, expected.low);
  EXPECT_NE(test.low, test_on_slices(one, other).front()->low);
}

class Slices : public ::testing::Test {
 protected:
  /// A run whose slices 0 and 1 have these levels.
  static RunResults run(const char* name, double first, double second, uint64_t seed) {
    ExampleValues examples{.values = std::vector<double>(kExamples, 1),
                           .weights = std::vector<double>(kExamples, 500),
                           .inputs = "texts"};
    examples.slices = {slice(first, seed), slice(second, seed + 1)};
    RunResults result{.name = name};
    result.examples = examples;
    return result;
  }
};

TEST_F(Slices, HaveVerdictsAgainstTheBaseline) {
  std::vector<RunResults> runs = {run("a", 2, 2, 10), run("b", 1.5, 2, 20), run("c", 2, 2, 10),
                                  run("d", 2, 2, 10)};
  for (size_t i = 1; i < runs.size(); ++i) runs[i].baseline = "a";
  runs[3].examples->inputs = "others";
  compare_slices(runs, {.key = "bits_per_byte", .label = "bits"}, 0.05);
  ASSERT_EQ(runs[0].slices.size(), 2U);
  EXPECT_FALSE(runs[0].slices[0].verdict);
  EXPECT_NEAR(runs[0].slices[0].share, 125.0 / 500, 0.02);
  EXPECT_EQ(runs[1].slices[0].verdict, Verdict::better);
  EXPECT_EQ(runs[1].slices[0].baseline_value, runs[0].slices[0].value);
  EXPECT_EQ(runs[1].slices[1].verdict, Verdict::same) << "within 5 %";
  EXPECT_GE(*runs[1].slices[0].p_corrected, 4 * *runs[1].slices[0].test->p) << "of four tests";
  EXPECT_EQ(runs[2].slices[0].verdict, Verdict::same);
  EXPECT_FALSE(runs[3].slices[0].verdict) << "of other texts";

  std::vector<RunResults> of_documents = {run("a", 2, 2, 10), run("b", 1.5, 2, 20), run("c", 1.5, 2, 20)};
  for (auto& of_run : of_documents) {
    for (size_t i = 0; i < kExamples; ++i) of_run.examples->documents.push_back(static_cast<int64_t>(i / 4));
    if (of_run.name != "a") of_run.baseline = "a";
  }
  of_documents[2].examples->documents[0] = 1;
  compare_slices(of_documents, {.key = "bits_per_byte", .label = "bits"}, 0.05);
  EXPECT_LT(of_documents[1].slices[0].test->n, runs[1].slices[0].test->n) << "a document counts once";
  EXPECT_FALSE(of_documents[2].slices[0].test) << "of other documents";

  std::vector<RunResults> classifiers = {run("a", 2, 2, 10)};
  compare_slices(classifiers, {.key = "accuracy", .label = "accuracy"}, 0.05);
  EXPECT_TRUE(classifiers[0].slices.empty());
}

}  // namespace
}  // namespace zoo::testing
