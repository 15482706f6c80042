#include "comparison/statistics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
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

/// Mean and standard deviation. Sums differences from the first value: equal values have a deviation of
/// exactly 0.
struct Moments {
  double mean, deviation;
};
Moments moments(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value - values.front();
  const double mean = values.front() + sum / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

/// A bound of the rounding error in differences of these values.
double rounding_of(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (const auto values : {a, b}) {
    for (const double value : values) largest = std::max(largest, std::abs(value));
  }
  return 8 * std::numeric_limits<double>::epsilon() * largest;
}

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

Interval mean_interval(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("a mean needs at least one value");
  const auto [mean, deviation] = moments(values);
  Interval interval{.mean = mean, .n = static_cast<int64_t>(values.size())};
  if (values.size() < 2) return interval;
  const auto n = static_cast<double>(values.size());
  const double half = student_t_quantile(0.5 + kConfidence / 2, n - 1) * deviation / std::sqrt(n);
  interval.low = mean - half;
  interval.high = mean + half;
  interval.deviation = deviation;
  return interval;
}

PairedTest paired_t_test(std::span<const double> values, std::span<const double> baseline) {
  if (values.size() != baseline.size())
    throw std::invalid_argument("a paired test needs lists of equal length");
  std::vector<double> differences(values.size());
  std::transform(values.begin(), values.end(), baseline.begin(), differences.begin(), std::minus<>());
  const auto interval = mean_interval(differences);
  if (!interval.deviation) return {.difference = interval.mean};
  const bool any = std::ranges::any_of(differences, [](double d) { return d != 0; });
  if (!any) return {.difference = 0, .low = 0, .high = 0, .p = 1};
  if (*interval.deviation <= rounding_of(values, baseline)) return {.difference = interval.mean};
  const auto n = static_cast<double>(interval.n);
  const double t = interval.mean / (*interval.deviation / std::sqrt(n));
  return {.difference = interval.mean,
          .low = interval.low,
          .high = interval.high,
          .p = student_t_tails(t, n - 1)};
}

std::vector<double> holm_corrected(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p[i]; });
  std::vector<double> corrected(p.size());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto remaining = static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1.0, remaining * p[order[rank]]));
    corrected[order[rank]] = largest;
  }
  return corrected;
}

Verdict verdict(double difference, std::optional<double> p_corrected, Better better) {
  if (!p_corrected) return Verdict::untested;
  if (!(*p_corrected < kSignificance)) return Verdict::same;
  const bool is_lower = difference < 0;
  return is_lower == (better == Better::lower) ? Verdict::better : Verdict::worse;
}

}  // namespace zoo
