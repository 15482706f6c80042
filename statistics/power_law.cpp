#include "statistics/power_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "base/student_t.h"
#include "statistics/paired_test.h"

namespace zoo {
namespace {

/// Sums over the points of one variant, in logarithms: x = log(flops), y = log(loss).
struct Sums {
  double n = 0, x = 0, y = 0;     // their number and means
  double xx = 0, xy = 0, yy = 0;  // sums of products of the deviations from the means

  double slope() const { return xy / xx; }
  /// The sum of the squared residuals of a line with this slope through the means.
  double residual(double slope) const { return yy - 2 * slope * xy + slope * slope * xx; }
};

Sums sums_of(std::span<const LossPoint> points, int64_t variant) {
  Sums sums;
  for (const auto& point : points) {
    if (point.variant != variant) continue;
    if (!(point.flops > 0 && point.loss > 0))
      throw std::invalid_argument("a power law needs positive losses and FLOPs");
    ++sums.n;
    sums.x += std::log(point.flops);
    sums.y += std::log(point.loss);
  }
  sums.x /= sums.n;
  sums.y /= sums.n;
  for (const auto& point : points) {
    if (point.variant != variant) continue;
    const double dx = std::log(point.flops) - sums.x, dy = std::log(point.loss) - sums.y;
    sums.xx += dx * dx;
    sums.xy += dx * dy;
    sums.yy += dy * dy;
  }
  if (!(sums.xx > 0)) throw std::invalid_argument("a power law needs several numbers of FLOPs");
  return sums;
}

/// The variance of a point around its line, and Student's t for the interval of what is estimated from it.
struct Noise {
  double variance = 0, t = 0;  // both 0 where there are no more points than parameters
  Noise(double residual, double degrees) {
    if (degrees < 1) return;
    variance = std::max(0.0, residual) / degrees;
    t = student_t_quantile(0.5 + kConfidence / 2, degrees);
  }
  bool known() const { return t > 0; }
};

Estimate exponent_of(double slope, double xx, const Noise& noise) {
  Estimate exponent{.value = -slope};
  if (!noise.known()) return exponent;
  const double half = noise.t * std::sqrt(noise.variance / xx);
  exponent.low = -slope - half;
  exponent.high = -slope + half;
  return exponent;
}

PowerLaw own_law(const Sums& sums) {
  const double slope = sums.slope();
  const Noise noise(sums.residual(slope), sums.n - 2);
  return {.exponent = exponent_of(slope, sums.xx, noise), .scale = std::exp(sums.y - slope * sums.x)};
}

/// exp(a / b) and its interval, for estimates a and b with these variances and covariance (Fieller).
Estimate exp_of_ratio(double a, double b, double aa, double ab, double bb, double t) {
  Estimate ratio{.value = std::exp(a / b)};
  if (t == 0) return ratio;
  const double p = b * b - t * t * bb, q = a * b - t * t * ab, r = a * a - t * t * aa;
  const double root = q * q - p * r;
  if (p <= 0 || root < 0) return ratio;  // b may be 0
  ratio.low = std::exp((q - std::sqrt(root)) / p);
  ratio.high = std::exp((q + std::sqrt(root)) / p);
  return ratio;
}

}  // namespace

ScalingFit fit_scaling(std::span<const LossPoint> points, int64_t n_variants) {
  if (n_variants < 1) throw std::invalid_argument("a fit needs a variant");
  std::vector<Sums> all;
  for (int64_t variant = 0; variant < n_variants; ++variant) all.push_back(sums_of(points, variant));

  ScalingFit fit;
  double n = 0, xx = 0, xy = 0, own_residual = 0;
  for (const auto& sums : all) {
    fit.own.push_back(own_law(sums));
    own_residual += sums.residual(sums.slope());
    n += sums.n;
    xx += sums.xx;
    xy += sums.xy;
  }
  const double slope = xy / xx;
  double residual = 0;
  for (const auto& sums : all) residual += sums.residual(slope);
  const auto variants = static_cast<double>(n_variants);
  const Noise noise(residual, n - variants - 1);
  fit.shared_exponent = exponent_of(slope, xx, noise);

  const auto& first = all.front();
  for (const auto& sums : all) {
    if (&sums == &first) {
      fit.compute_ratios.push_back({.value = 1, .low = 1, .high = 1});
      continue;
    }
    // On its line, log(loss) = y + slope · (log(flops) - x). Equal losses are apart by a / slope.
    const double dx = first.x - sums.x, a = first.y - sums.y - slope * dx;
    const double s = noise.variance;
    fit.compute_ratios.push_back(
        exp_of_ratio(a, slope, s * (1 / first.n + 1 / sums.n + dx * dx / xx), -s * dx / xx, s / xx, noise.t));
  }

  const double more = variants - 1, degrees = n - 2 * variants;
  if (more >= 1 && degrees >= 1 && own_residual > 0) {
    const double f = (residual - own_residual) / more / (own_residual / degrees);
    fit.p_equal_exponents = f_tail(std::max(0.0, f), more, degrees);
  }
  return fit;
}

}  // namespace zoo
