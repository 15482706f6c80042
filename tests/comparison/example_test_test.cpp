// Two models on the same examples.

#include "statistics/example_test.h"

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/student_t.h"

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
  EXPECT_DOUBLE_EQ(*test.p, 1.0 / 10'001) << "the sums as they are count among the 10,000 that are drawn";
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

/// Two models with 0 and 1 for n answers, of which the first ones only one of them has right.
std::pair<ExampleValues, ExampleValues> answers_of(size_t n, size_t more, size_t less) {
  ExampleValues one{.values = std::vector<double>(n, 1), .weights = std::vector<double>(n, 1), .inputs = ""};
  auto other = one;
  for (size_t i = 0; i < more; ++i) other.values[i] = 0;
  for (size_t i = more; i < more + less; ++i) one.values[i] = 0;
  one.outputs = "of one", other.outputs = "of the other";
  return {one, other};
}

double p_same_of(const std::pair<ExampleValues, ExampleValues>& models, double margin) {
  const auto& [one, other] = models;
  return *equivalence_on_examples(one, other, *test_on_examples(one, other), margin);
}

TEST(EquivalenceOnExamples, FewEqualAnswersShowLittle) {
  const auto two = answers_of(2, 0, 0);
  EXPECT_NEAR(p_same_of(two, 0.01), 0.99 * 0.99, 1e-12);
  EXPECT_GT(p_same_of(answers_of(290, 0, 0), 0.01), 0.05);
  EXPECT_LT(p_same_of(answers_of(300, 0, 0), 0.01), 0.05);
  auto copy = two;
  copy.second.outputs = copy.first.outputs;
  EXPECT_EQ(p_same_of(copy, 0.01), 0) << "they say the same";
  auto documents = answers_of(40, 0, 0);
  for (int64_t i = 0; i < 40; ++i) documents.first.documents.push_back(i / 20);
  documents.second.documents = documents.first.documents;
  EXPECT_NEAR(p_same_of(documents, 0.01), 0.99 * 0.99, 1e-12) << "two documents";
  EXPECT_EQ(p_same_of(two, 0), 1) << "nothing is closer than a margin of 0";
}

/// The score test with a likelihood that is searched for its maximum.
TEST(EquivalenceOnExamples, OfAnswersIsTangosScoreTest) {
  constexpr double n = 200, margin = 0.05;
  for (const auto& [more, less] : {std::pair(1.0, 1.0), std::pair(6.0, 2.0), std::pair(3.0, 8.0)}) {
    const double b = std::max(more, less), c = std::min(more, less);
    const auto log_likelihood = [&](double share) {
      return b * std::log(share + margin) + c * std::log(share) +
             (n - b - c) * std::log(1 - 2 * share - margin);
    };
    double best = 1e-6;
    for (double share = 1e-6; share < 0.4; share += 1e-6)
      if (log_likelihood(share) > log_likelihood(best)) best = share;
    const double z = (n * margin - (b - c)) / std::sqrt(n * (2 * best + margin * (1 - margin)));
    const auto models = answers_of(200, static_cast<size_t>(more), static_cast<size_t>(less));
    EXPECT_NEAR(p_same_of(models, margin), 1 - student_t_cdf(z, n - 1), 1e-4);
  }
}

/// Of 1,000 pairs of models whose shares of right answers differ by the margin, at most 5 % are called the
/// same, with 17 more for chance.
TEST(EquivalenceOnExamples, ModelsThatDifferByTheMarginAreRarelyTheSame) {
  constexpr double margin = 0.05;
  int n_same = 0, n_same_of_equals = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    CounterRandom random({i, 12});
    size_t more = 0, less = 0, more_of_equals = 0;
    for (int k = 0; k < 300; ++k) {
      const double drawn = random.uniform();
      more += drawn < 0.06 ? 1 : 0;
      less += drawn > 0.99 ? 1 : 0;
      more_of_equals += drawn < 0.01 ? 1 : 0;
    }
    n_same += p_same_of(answers_of(300, more, less), margin) < kSignificance ? 1 : 0;
    n_same_of_equals += p_same_of(answers_of(300, more_of_equals, less), margin) < kSignificance ? 1 : 0;
  }
  EXPECT_LE(n_same, 67);
  EXPECT_GE(n_same_of_equals, 900) << "a test that never finds anything";
}

/// How many of 1,000 comparisons find a difference of two models whose labels are exchanged at random. Of
/// losses, or of right and wrong answers.
int false_verdicts(bool are_losses) {
  int n_different = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    auto one = values_around(3, 40, 2 * i), other = values_around(3.5, 40, 2 * i + 1);
    CounterRandom random({i, 9});
    for (size_t k = 0; k < 40; ++k) {
      if (!are_losses) {
        one.weights[k] = other.weights[k] = 1;
        one.values[k] = one.values[k] > 3 ? 1 : 0;
        other.values[k] = other.values[k] > 3 ? 1 : 0;
      }
      if (random.below(2) == 1) std::swap(one.values[k], other.values[k]);
    }
    const auto test = *test_on_examples(one, other);
    const auto found = verdict(test, test.p, std::nullopt, Better::lower);
    n_different += found == Verdict::better || found == Verdict::worse ? 1 : 0;
  }
  return n_different;
}

/// At most 5 % of the tests say so at 5 %: 50 of 1,000, with 17 more for chance (the 99th percentile).
TEST(TestOnExamples, ExchangedLabelsAreRarelyADifference) {
  const int of_losses = false_verdicts(true), of_answers = false_verdicts(false);
  RecordProperty("of_losses", of_losses);
  RecordProperty("of_answers", of_answers);
  EXPECT_LE(of_losses, 67);
  EXPECT_LE(of_answers, 67);
  EXPECT_GE(of_losses, 30) << "a test that never finds anything";
  EXPECT_GE(of_answers, 10) << "answers have few values, so p is seldom near 5 %";
}

/// Twelve documents of ten parts, whose values the document decides: how many of 300 comparisons of two
/// models whose documents are exchanged at random find a difference.
int false_verdicts_on_documents(bool are_known) {
  int n_different = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    CounterRandom random({i, 11});
    ExampleValues one{.values = {}, .weights = std::vector<double>(120, 1), .inputs = "same"}, other = one;
    for (int64_t document = 0; document < 12; ++document) {
      double first = random.uniform(), second = random.uniform();
      if (random.below(2) == 1) std::swap(first, second);
      for (int part = 0; part < 10; ++part) {
        one.values.push_back(first + 0.1 * random.uniform());
        other.values.push_back(second + 0.1 * random.uniform());
        if (are_known) one.documents.push_back(document);
      }
    }
    other.documents = one.documents;
    const auto test = *test_on_examples(one, other);
    EXPECT_EQ(test.n, are_known ? 12 : 120);
    n_different += *test.p < kSignificance ? 1 : 0;
  }
  return n_different;
}

TEST(TestOnExamples, PartsOfADocumentAreNotIndependent) {
  EXPECT_LE(false_verdicts_on_documents(true), 24) << "5 % of 300, and the 99th percentile of chance";
  EXPECT_GE(false_verdicts_on_documents(false), 90) << "parts that count as independent are too many";
}

TEST(TestOnExamples, DocumentsCountAsTheirSums) {
  auto one = values_around(3, 50, 1), other = values_around(3.1, 50, 2);
  for (int64_t i = 0; i < 50; ++i) one.documents.push_back((i * 7) % 20);
  other.documents = one.documents;
  const auto sums = [&](const ExampleValues& values) {
    ExampleValues result{.values = std::vector<double>(20), .weights = std::vector<double>(20), .inputs = ""};
    for (size_t i = 0; i < 50; ++i) {
      result.values[static_cast<size_t>(one.documents[i])] += values.values[i];
      result.weights[static_cast<size_t>(one.documents[i])] += values.weights[i];
    }
    return result;
  };
  const auto test = *test_on_examples(one, other), expected = *test_on_examples(sums(one), sums(other));
  EXPECT_EQ(test.n, 20);
  EXPECT_NEAR(test.difference, expected.difference, 1e-12);
  EXPECT_NEAR(*test.low, *expected.low, 1e-12);
  EXPECT_NEAR(*test.high, *expected.high, 1e-12);
  EXPECT_EQ(test.p, expected.p);
  other.documents[0] = 19;
  EXPECT_FALSE(test_on_examples(one, other)) << "other documents";
  one.documents = other.documents = std::vector<int64_t>(50);
  EXPECT_FALSE(test_on_examples(one, other)) << "one document shows no spread";
}

TEST(DifferingExamplesOf, AreThoseWithTheLargestDifferenceOfTheMetric) {
  const auto text = [](const std::string& input, const std::string& prediction) {
    return ExampleText{.input = input, .target = "t", .prediction = prediction};
  };
  const ExampleValues one{.values = {4, 2, 9, 1, 3, 8},
                          .weights = {2, 1, 3, 1, 0, 4},
                          .inputs = "same",
                          .texts = {text("a", "1a"), text("b", "1b"), text("c", "1c"), text("d", "1d"),
                                    text("e", "1e"), text("f", "1f")}};
  ExampleValues other = one;
  other.values = {6, 5, 6, 1, 9, 0};
  for (auto& of_other : other.texts) of_other.prediction = "2" + of_other.input;
  const auto [lower, higher] = differing_examples(one, other, 2);
  ASSERT_EQ(lower.size(), 2U);
  EXPECT_EQ(lower[0].text.input, "b");  // 3 lower; that of a is divided by a weight of 2
  EXPECT_EQ(lower[0].text.prediction, "1b");
  EXPECT_EQ(lower[0].baseline_prediction, "2b");
  EXPECT_EQ(lower[0].value, 2);
  EXPECT_EQ(lower[0].baseline_value, 5);
  EXPECT_EQ(lower[1].text.input, "a");
  EXPECT_EQ(lower[1].value, 2);
  ASSERT_EQ(higher.size(), 2U);
  EXPECT_EQ(higher[0].text.input, "f");
  EXPECT_EQ(higher[1].text.input, "c");
  EXPECT_EQ(differing_examples(one, other, 1).lower.size(), 1U);
  other.inputs = "others";
  EXPECT_TRUE(differing_examples(one, other, 2).lower.empty());
}

}  // namespace
}  // namespace zoo::testing
