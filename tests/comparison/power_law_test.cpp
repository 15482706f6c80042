// Fits of loss against compute, with made-up runs of a known law.

#include "statistics/power_law.h"

#include <cmath>
#include <numbers>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace zoo {
namespace {

double normal(std::mt19937_64& random) { return std::normal_distribution<>()(random); }

/// Runs at four sizes with three seeds each. Variant 1 reaches the loss of variant 0 with `ratio` of its
/// compute.
std::vector<LossPoint> made_up(double exponent, double ratio, double noise, std::mt19937_64& random) {
  std::vector<LossPoint> points;
  for (int64_t variant = 0; variant < 2; ++variant) {
    for (const double flops : {1e12, 3e12, 1e13, 4e13}) {
      for (int seed = 0; seed < 3; ++seed) {
        const double used = flops * (variant == 1 ? 1.3 : 1.0);  // variants need not have the same FLOPs
        const double loss = 50 * std::pow(variant == 1 ? used / ratio : used, -exponent);
        points.push_back({variant, used, loss * std::exp(noise * normal(random))});
      }
    }
  }
  return points;
}

TEST(PowerLaw, RecoversAnExactLaw) {
  std::mt19937_64 random(1);
  const auto fit = fit_scaling(made_up(0.07, 0.8, 0, random), 2);
  EXPECT_NEAR(fit.shared_exponent.value, 0.07, 1e-12);
  EXPECT_NEAR(fit.own[0].exponent.value, 0.07, 1e-12);
  EXPECT_NEAR(fit.own[0].scale, 50, 1e-9);
  EXPECT_NEAR(fit.own[1].exponent.value, 0.07, 1e-12);
  EXPECT_EQ(fit.compute_ratios[0].value, 1);
  EXPECT_NEAR(fit.compute_ratios[1].value, 0.8, 1e-9);
}

// The interval of 95 % contains the true value in 95 % of the studies.
TEST(PowerLaw, ItsIntervalsContainTheTruthAsOftenAsTheySay) {
  std::mt19937_64 random(2);
  constexpr int n_studies = 1000;
  int exponents = 0, ratios = 0, equal = 0;
  const auto contains = [](const Estimate& estimate, double truth) {
    return *estimate.low <= truth && truth <= *estimate.high;
  };
  for (int i = 0; i < n_studies; ++i) {
    const auto fit = fit_scaling(made_up(0.07, 0.8, 0.01, random), 2);
    exponents += contains(fit.shared_exponent, 0.07);
    ratios += contains(fit.compute_ratios[1], 0.8);
    equal += *fit.p_equal_exponents >= 0.05;
  }
  const double noise = 3.5 * std::sqrt(0.95 * 0.05 / n_studies);
  for (const int count : {exponents, ratios, equal})
    EXPECT_NEAR(static_cast<double>(count) / n_studies, 0.95, noise);
}

TEST(PowerLaw, DifferentExponentsAreFound) {
  std::mt19937_64 random(3);
  auto points = made_up(0.07, 1, 0.002, random);
  for (auto& point : points) {
    if (point.variant == 1) point.loss *= std::pow(point.flops / 1e12, 0.03);
  }
  const auto fit = fit_scaling(points, 2);
  EXPECT_LT(*fit.p_equal_exponents, 1e-3);
  EXPECT_LT(*fit.own[1].exponent.high, *fit.own[0].exponent.low);
}

TEST(PowerLaw, ALossThatHardlyFallsBoundsNoRatio) {
  std::mt19937_64 random(4);
  const auto fit = fit_scaling(made_up(0.0001, 0.8, 0.05, random), 2);
  EXPECT_FALSE(fit.compute_ratios[1].low || fit.compute_ratios[1].high);
}

TEST(PowerLaw, OfTwoPointsHasNoInterval) {
  const LossPoint points[] = {{0, 1e12, 3.0}, {0, 1e13, 2.5}};
  const auto fit = fit_scaling(points, 1);
  EXPECT_NEAR(fit.own[0].exponent.value, std::log10(3.0 / 2.5), 1e-12);
  EXPECT_FALSE(fit.own[0].exponent.low);
  EXPECT_FALSE(fit.p_equal_exponents);
}

// Four points less two heights and a slope leave one degree of freedom, for which Student's t is Cauchy's
// distribution.
TEST(PowerLaw, EachVariantTakesADegreeOfFreedom) {
  const double e = std::numbers::e;
  const LossPoint points[] = {{0, 1, 1}, {0, e, std::exp(-0.1)}, {1, 1, 1}, {1, e, std::exp(-0.3)}};
  const auto shared = fit_scaling(points, 2).shared_exponent;
  const double t = std::tan(0.475 * std::numbers::pi), error = 0.1;
  EXPECT_NEAR(shared.value, 0.2, 1e-12);
  EXPECT_NEAR(*shared.low, 0.2 - t * error, 1e-6);
  EXPECT_NEAR(*shared.high, 0.2 + t * error, 1e-6);
}

TEST(PowerLaw, RefusesWhatHasNoLaw) {
  const LossPoint one_size[] = {{0, 1e12, 3.0}, {0, 1e12, 3.1}};
  const LossPoint negative[] = {{0, 1e12, 3.0}, {0, 1e13, -3.1}};
  EXPECT_THROW(fit_scaling(one_size, 1), std::invalid_argument);
  EXPECT_THROW(fit_scaling(negative, 1), std::invalid_argument);
  EXPECT_THROW(fit_scaling(one_size, 2), std::invalid_argument);
  EXPECT_THROW(fit_scaling({}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace zoo
