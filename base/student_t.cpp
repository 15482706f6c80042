#include "base/student_t.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace zoo {
namespace {

/// 1/(1 + d₁/(1 + d₂/(1 + …))) of DLMF 8.17.22, for x < (a + 1)/(a + b + 2), where it converges fast.
/// Evaluation from the last term to the first is stable. The number of terms doubles until the value stays
/// the same.
double beta_fraction(double x, double a, double b) {
  const auto term = [&](int64_t k) {
    const int64_t half = k / 2;
    const auto m = static_cast<double>(half);
    return k % 2 == 0 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                      : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
  };
  constexpr int64_t kMostTerms = int64_t{1} << 20;
  double before = 0, value = 1;
  for (int64_t n_terms = 16; value != before && n_terms <= kMostTerms; n_terms *= 2) {
    before = value;
    double denominator = 1;
    for (int64_t k = n_terms; k >= 1; --k) denominator = 1 + term(k) / denominator;
    value = 1 / denominator;
  }
  return value;
}

/// I_x(a, b), the regularised incomplete beta function. `y` is 1 - x, which the caller knows more exactly.
double regularized_beta(double x, double y, double a, double b) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - regularized_beta(y, x, b, a);  // DLMF 8.17.4
  const double log_beta = std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
  return std::exp(a * std::log(x) + b * std::log(y) - log_beta) / a * beta_fraction(x, a, b);
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

}  // namespace

double student_t_tails(double t, double degrees) {
  const double ratio = t * t / degrees;
  return regularized_beta(1 / (1 + ratio), 1 / (1 + 1 / ratio), degrees / 2, 0.5);
}

double student_t_cdf(double t, double degrees) {
  const double tail = student_t_tails(t, degrees) / 2;
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double p, double degrees) {
  if (!(p > 0 && p < 1)) throw std::invalid_argument("a quantile needs a probability between 0 and 1");
  if (p == 0.5) return 0;
  const double tails = 2 * std::min(p, 1 - p);
  double low = 0, high = 1;
  while (student_t_tails(high, degrees) > tails) {
    low = high;
    high *= 2;
  }
  // The tails fall monotonically with t: halve the interval until it contains no other number.
  double middle = low + (high - low) / 2;
  while (middle > low && middle < high) {
    (student_t_tails(middle, degrees) > tails ? low : high) = middle;
    middle = low + (high - low) / 2;
  }
  return p < 0.5 ? -high : high;
}

double f_tail(double f, double above, double below) {
  const double share = below / (below + above * f);
  return regularized_beta(share, 1 - share, below / 2, above / 2);
}

double noncentral_t_tails(double t, double degrees, double shift) {
  // T = (Z + shift) / S, where S² is chi-squared divided by its degrees: P(|T| >= t) for each S, weighted
  // with the density of S. Simpson's rule over all S that have any weight.
  const double log_scale = std::log(2) + degrees / 2 * std::log(degrees / 2) - std::lgamma(degrees / 2);
  const auto weighted = [&](double s) {
    if (s <= 0) return 0.0;
    const double density = std::exp(log_scale + (degrees - 1) * std::log(s) - degrees * s * s / 2);
    return density * (normal_cdf(shift - t * s) + normal_cdf(-shift - t * s));
  };
  // With few degrees of freedom, S is often so small that the weight changes fast.
  const int64_t n_intervals = degrees < 3 ? 2000 : 300;
  const double width = 12 / std::sqrt(degrees);
  const double from = std::max(0.0, 1 - width), step = (1 + width - from) / static_cast<double>(n_intervals);
  // With one degree of freedom the density does not vanish at 0.
  double sum = weighted(std::max(from, 1e-12)) + weighted(1 + width);
  for (int64_t i = 1; i < n_intervals; ++i)
    sum += (i % 2 == 0 ? 2 : 4) * weighted(from + static_cast<double>(i) * step);
  return std::clamp(sum * step / 3, 0.0, 1.0);
}

}  // namespace zoo
