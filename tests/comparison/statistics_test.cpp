#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/student_t.h"
#include "io/config/describe.h"
#include "statistics/paired_test.h"

namespace zoo {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

constexpr double kTimes[] = {-40.0, -3.2, -1.0, -0.01, 0.0, 0.3, 1.0, 2.0, 12.7, 900.0};

// References in closed form: Cauchy's distribution for one degree of freedom, an algebraic function for two.
TEST(StudentT, HasItsClosedForms) {
  for (const double t : kTimes) {
    SCOPED_TRACE(t);
    EXPECT_NEAR(student_t_cdf(t, 1), 0.5 + std::atan(t) / std::numbers::pi, 1e-14);
    EXPECT_NEAR(student_t_cdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)), 1e-14);
  }
  // Far out, where 1 - cdf has no digits left, the tails are 2/(π|t|), the first term of Cauchy's tail.
  EXPECT_NEAR(student_t_tails(1e20, 1) * std::numbers::pi / 2 * 1e20, 1, 1e-12);
  EXPECT_EQ(student_t_tails(std::numeric_limits<double>::infinity(), 3), 0);
  // With many degrees of freedom it becomes the normal distribution.
  EXPECT_NEAR(student_t_cdf(1.5, 1e7), 0.5 * std::erfc(-1.5 / std::numbers::sqrt2), 1e-7);
}

TEST(StudentT, IsSymmetricAndItsTailsAreBothSides) {
  for (const double degrees : {1.0, 2.0, 2.5, 9.0, 400.0}) {
    for (const double t : kTimes) {
      SCOPED_TRACE(::testing::Message() << "t " << t << ", degrees " << degrees);
      EXPECT_NEAR(student_t_cdf(t, degrees) + student_t_cdf(-t, degrees), 1, 1e-15);
      EXPECT_NEAR(student_t_tails(t, degrees), 2 * student_t_cdf(-std::abs(t), degrees), 1e-15);
    }
  }
}

TEST(StudentT, QuantileUndoesTheDistribution) {
  for (const double degrees : {1.0, 2.0, 4.0, 29.0, 1000.0}) {
    for (const double p : {1e-9, 0.025, 0.4, 0.5, 0.6, 0.975, 0.9999}) {
      SCOPED_TRACE(::testing::Message() << "p " << p << ", degrees " << degrees);
      const double t = student_t_quantile(p, degrees);
      EXPECT_NEAR(student_t_cdf(t, degrees) / p, 1, 1e-11);
      EXPECT_EQ(std::signbit(t), p < 0.5);
    }
  }
  for (const double p : {0.0, 1.0, -0.1, 1.1, std::nan("")})
    EXPECT_THROW(student_t_quantile(p, 3), std::invalid_argument);
}

TEST(MeanInterval, OfOneValueIsNoInterval) {
  const double value = 2.5;
  const auto interval = mean_interval({&value, 1});
  EXPECT_EQ(interval.mean, 2.5);
  EXPECT_EQ(interval.n, 1);
  EXPECT_FALSE(interval.low || interval.high || interval.deviation);
  EXPECT_THROW(mean_interval({}), std::invalid_argument);
}

TEST(MeanInterval, OfTwoValuesIsThatOfTheTangent) {
  // One degree of freedom: the quantile is tan(π(p - ½)); the deviation of {1, 3} is √2.
  const double values[] = {1, 3};
  const auto interval = mean_interval(values);
  const double half = std::tan(std::numbers::pi * 0.475) * std::numbers::sqrt2 / std::numbers::sqrt2;
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_DOUBLE_EQ(*interval.deviation, std::numbers::sqrt2);
  EXPECT_NEAR(*interval.low, 2 - half, 1e-9);
  EXPECT_NEAR(*interval.high, 2 + half, 1e-9);
}

TEST(MeanInterval, OfEqualValuesIsExactlyThatValue) {
  const double values[] = {0.1, 0.1, 0.1};  // whose sum is not 0.3
  const auto interval = mean_interval(values);
  EXPECT_EQ(interval.mean, 0.1);
  EXPECT_EQ(interval.low, 0.1);
  EXPECT_EQ(interval.high, 0.1);
  EXPECT_EQ(interval.deviation, 0.0);
}

TEST(MeanInterval, KeepsItsDigitsFarFromZero) {
  const double values[] = {1e9 + 1, 1e9 + 2, 1e9 + 3};
  EXPECT_DOUBLE_EQ(*mean_interval(values).deviation, 1);
}

TEST(PairedTest, OfIdenticalRunsFindsNothing) {
  const double values[] = {1.7, 1.2, 1.9};
  const auto test = paired_t_test(values, values);
  EXPECT_EQ(test.difference, 0);
  EXPECT_EQ(test.low, 0.0);
  EXPECT_EQ(test.high, 0.0);
  EXPECT_EQ(test.p, 1.0);
}

TEST(PairedTest, EqualDifferencesShowNoSpreadToJudgeBy) {
  // Accuracies over 50 rows, each better by two rows: the differences do not have the same bits.
  const double baseline[] = {0.48, 0.62, 0.54}, values[] = {0.52, 0.66, 0.58};
  ASSERT_NE(values[0] - baseline[0], values[2] - baseline[2]);
  const auto test = paired_t_test(values, baseline);
  EXPECT_NEAR(test.difference, 0.04, 1e-12);
  EXPECT_EQ(test.low, std::nullopt);
  EXPECT_EQ(test.high, std::nullopt);
  EXPECT_EQ(test.p, std::nullopt);
}

TEST(PairedTest, IsOfThePairsAndNotOfTheGroups) {
  // Seeds differ by far more than the rows do. The paired test still finds the small steady difference.
  const double baseline[] = {1, 5, 9, 13}, values[] = {1.11, 5.09, 9.10, 13.10};
  const double reversed[] = {13.10, 9.10, 5.09, 1.11};
  EXPECT_LT(*paired_t_test(values, baseline).p, 1e-3);
  EXPECT_GT(*paired_t_test(reversed, baseline).p, 0.9);
  EXPECT_NEAR(paired_t_test(values, baseline).difference, 0.1, 1e-12);
}

TEST(PairedTest, ChangesSignWithTheSides) {
  const double a[] = {1.0, 2.5, 2.0}, b[] = {1.5, 2.0, 3.5};
  const auto test = paired_t_test(a, b), other = paired_t_test(b, a);
  EXPECT_EQ(test.difference, -other.difference);
  EXPECT_EQ(test.p, other.p);
  EXPECT_EQ(*test.low, -*other.high);
}

// The interval excludes 0 exactly where p < 0.05.
TEST(PairedTest, HasAnIntervalThatAgreesWithItsP) {
  const double zero[] = {0, 0, 0};
  const double deviation = 1;  // of {m - 1, m, m + 1}
  const double edge = student_t_quantile(0.975, 2) * deviation / std::sqrt(3.0);
  for (const double mean : {0.99 * edge, 1.01 * edge}) {
    const double values[] = {mean - 1, mean, mean + 1};
    const auto test = paired_t_test(values, zero);
    EXPECT_EQ(*test.low > 0, mean > edge);
    EXPECT_EQ(*test.p<kSignificance, mean> edge);
  }
}

TEST(PairedTest, OfOnePairSaysNothingButTheDifference) {
  const double a[] = {1.5}, b[] = {1.25};
  const auto test = paired_t_test(a, b);
  EXPECT_EQ(test.difference, 0.25);
  EXPECT_FALSE(test.p || test.low || test.high);
  const double two[] = {1, 2};
  EXPECT_THROW(paired_t_test(a, two), std::invalid_argument);
  EXPECT_THROW(paired_t_test({}, {}), std::invalid_argument);
}

TEST(Holm, MultipliesStepByStepAndNeverFalls) {
  // Sorted 0.01, 0.02, 0.022, 0.4 → 0.04, 0.06, 0.044 raised to 0.06, 0.4.
  const double p[] = {0.022, 0.4, 0.01, 0.02};
  EXPECT_THAT(holm_corrected(p), ElementsAre(DoubleEq(0.06), DoubleEq(0.4), DoubleEq(0.04), DoubleEq(0.06)));
  const double large[] = {0.5, 0.9};
  EXPECT_THAT(holm_corrected(large), ElementsAre(1.0, 1.0));
  const double one[] = {0.03};
  EXPECT_THAT(holm_corrected(one), ElementsAre(0.03));
  EXPECT_TRUE(holm_corrected({}).empty());
}

// By its definition: at a level, those up to the largest rank k with p <= k / m * level are rejected. The
// corrected p is the least level that rejects.
TEST(BenjaminiHochberg, IsTheLeastLevelThatRejects) {
  const std::vector<double> p = {0.04, 0.001, 0.6, 0.039, 0.0075, 0.03, 0.99};
  const auto m = static_cast<double>(p.size());
  auto sorted = p;
  std::ranges::sort(sorted);
  const auto rejects = [&](double level, double one) {
    double largest = -1;
    for (size_t k = 1; k <= sorted.size(); ++k)
      if (sorted[k - 1] <= static_cast<double>(k) / m * level) largest = sorted[k - 1];
    return one <= largest;
  };
  const auto corrected = benjamini_hochberg_corrected(p);
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_TRUE(rejects(corrected[i] + 1e-9, p[i])) << i;
    EXPECT_FALSE(rejects(corrected[i] - 1e-9, p[i])) << i;
  }
  EXPECT_THAT(corrected[0], DoubleEq(0.04 * 7 / 5));
  EXPECT_THAT(corrected[5], DoubleEq(0.04 * 7 / 5)) << "lowered to that of the next larger ones";
  EXPECT_TRUE(benjamini_hochberg_corrected({}).empty());
  const std::vector<std::optional<double>> some = {0.03, std::nullopt, 0.02};
  EXPECT_EQ(corrected_known(Correction::benjamini_hochberg, some),
            (std::vector<std::optional<double>>{0.03, std::nullopt, 0.03}));
  EXPECT_EQ(corrected_known(Correction::holm, some),
            (std::vector<std::optional<double>>{0.04, std::nullopt, 0.04}));
}

TEST(Equivalence, IsTheLargerOfTwoOneSidedTests) {
  const double baseline[] = {1, 2, 3, 4}, values[] = {1.01, 2.03, 2.98, 4.02};
  const auto test = paired_t_test(values, baseline);
  const double below = student_t_cdf((test.difference - 0.05) / *test.error, 3);  // H: difference >= 0.05
  const double above =
      1 - student_t_cdf((test.difference + 0.05) / *test.error, 3);  // H: difference <= -0.05
  EXPECT_NEAR(*equivalence_p(test, 0.05), std::max(below, above), 1e-14);
  EXPECT_GT(*equivalence_p(test, 0.001), 0.5) << "the difference is larger than that";
  // The 90 % interval lies within the margin exactly where p < 0.05.
  const double edge = std::abs(test.difference) + student_t_quantile(0.95, 3) * *test.error;
  EXPECT_LT(*equivalence_p(test, 1.001 * edge), 0.05);
  EXPECT_GT(*equivalence_p(test, 0.999 * edge), 0.05);
  EXPECT_EQ(equivalence_p(paired_t_test(baseline, baseline), 0.05), 0.0);
  EXPECT_EQ(equivalence_p({.n = 1, .difference = 0.1}, 0.5), std::nullopt);
}

TEST(Verdict, SaysWhichWayAndOnlyWhatIsSignificant) {
  const auto said = [](double difference, std::optional<double> p, std::optional<double> p_same,
                       Better better) {
    return verdict({.n = 3, .difference = difference}, p, p_same, better);
  };
  EXPECT_EQ(said(-0.1, 0.049, 1, Better::lower), Verdict::better);
  EXPECT_EQ(said(0.1, 0.0, 1, Better::lower), Verdict::worse);
  EXPECT_EQ(said(-0.1, 0.01, 1, Better::higher), Verdict::worse);
  EXPECT_EQ(said(0.1, 0.01, 1, Better::higher), Verdict::better);
  EXPECT_EQ(said(0.1, 0.01, 0.01, Better::higher), Verdict::better) << "a small difference is one";
  EXPECT_EQ(said(-0.1, 0.05, 0.2, Better::lower), Verdict::undecided);
  EXPECT_EQ(said(-0.1, 0.05, std::nullopt, Better::lower), Verdict::undecided);
  EXPECT_EQ(said(0.0, 1.0, 0.04, Better::lower), Verdict::same);
  EXPECT_EQ(said(-5.0, std::nullopt, std::nullopt, Better::lower), Verdict::untested);
  EXPECT_EQ(said(-5.0, std::nan(""), 1, Better::lower), Verdict::undecided);
  EXPECT_EQ(name_of(Verdict::untested), "untested");
  EXPECT_EQ(name_of(Better::higher), "higher");
}

}  // namespace
}  // namespace zoo
