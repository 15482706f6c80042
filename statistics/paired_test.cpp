#include "statistics/paired_test.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "base/student_t.h"

namespace zoo {
namespace {

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

double nearest_quantile(std::span<const double> sorted, double share) {
  return sorted[static_cast<size_t>(std::llround(share * static_cast<double>(sorted.size() - 1)))];
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
  if (!interval.deviation) return {.n = interval.n, .difference = interval.mean};
  const bool any = std::ranges::any_of(differences, [](double d) { return d != 0; });
  if (!any) return {.n = interval.n, .difference = 0, .error = 0, .low = 0, .high = 0, .p = 1};
  if (*interval.deviation <= rounding_of(values, baseline))
    return {.n = interval.n, .difference = interval.mean};
  const auto n = static_cast<double>(interval.n);
  const double error = *interval.deviation / std::sqrt(n);
  return {.n = interval.n,
          .difference = interval.mean,
          .error = error,
          .low = interval.low,
          .high = interval.high,
          .p = student_t_tails(interval.mean / error, n - 1)};
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

std::vector<double> benjamini_hochberg_corrected(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return p[i]; });
  std::vector<double> corrected(p.size());
  const auto n = static_cast<double>(p.size());
  double least = 1;
  for (size_t rank = order.size(); rank > 0; --rank) {
    least = std::min(least, n / static_cast<double>(rank) * p[order[rank - 1]]);
    corrected[order[rank - 1]] = least;
  }
  return corrected;
}

std::vector<std::optional<double>> corrected_known(Correction correction,
                                                   const std::vector<std::optional<double>>& all) {
  std::vector<double> known;
  for (const auto& p : all) {
    if (p) known.push_back(*p);
  }
  const auto corrected =
      correction == Correction::holm ? holm_corrected(known) : benjamini_hochberg_corrected(known);
  std::vector<std::optional<double>> result;
  size_t next = 0;
  for (const auto& p : all) result.push_back(p ? std::optional(corrected[next++]) : std::nullopt);
  return result;
}

std::optional<double> equivalence_p(const PairedTest& test, double margin) {
  if (!test.error) return std::nullopt;
  if (*test.error == 0) return margin > std::abs(test.difference) ? 0 : 1;
  // Schuirmann's two one-sided tests: the difference is above -margin, and below margin.
  const double t = (margin - std::abs(test.difference)) / *test.error;
  return 1 - student_t_cdf(t, static_cast<double>(test.n - 1));
}

Verdict verdict(const PairedTest& test, std::optional<double> p, std::optional<double> p_same,
                Better better) {
  if (!p) return Verdict::untested;
  if (*p < kSignificance) {
    const bool is_lower = test.difference < 0;
    return is_lower == (better == Better::lower) ? Verdict::better : Verdict::worse;
  }
  return p_same && *p_same < kSignificance ? Verdict::same : Verdict::undecided;
}

std::vector<Judgement> judged(const std::vector<MarginTest>& tests, Correction correction, Better better) {
  std::vector<std::optional<double>> p, p_same;
  for (const auto& [test, margin] : tests) {
    p.push_back(test.p);
    p_same.push_back(equivalence_p(test, margin));
  }
  p = corrected_known(correction, p);
  p_same = corrected_known(correction, p_same);
  std::vector<Judgement> judgements;
  for (size_t i = 0; i < tests.size(); ++i)
    judgements.push_back({p[i], p_same[i], verdict(tests[i].test, p[i], p_same[i], better)});
  return judgements;
}

}  // namespace zoo
