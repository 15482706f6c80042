#pragma once
// Statistics of a metric that was measured with a few seeds: an interval of its mean, and a test of whether
// two rows of a table differ.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tasks/metric.h"

namespace zoo {

/// The confidence level of every interval.
inline constexpr double kConfidence = 0.95;
/// A difference is significant where its corrected p is below this.
inline constexpr double kSignificance = 0.05;

/// The mean of n values and Student's interval of it (Student 1908).
struct Interval {
  double mean = 0;
  std::optional<double> low = {}, high = {};  // absent for a single value
  /// Standard deviation of one value, with n - 1 in the denominator; absent for a single value.
  std::optional<double> deviation = {};
  int64_t n = 0;
};
/// `values` must be finite. Throws std::invalid_argument where there are none.
Interval mean_interval(std::span<const double> values);

/// The value below which this share of sorted values lies: the nearest one. There must be some.
double nearest_quantile(std::span<const double> sorted, double share);

/// Student's paired t-test. Only the difference is known where nothing shows the spread of the differences:
/// for a single pair, and where all pairs differ by the same amount, which happens with metrics that count.
struct PairedTest {
  int64_t n = 0;                              // pairs
  double difference = 0;                      // mean of values - baseline
  std::optional<double> error = {};           // standard error of the difference; absent where all are equal
  std::optional<double> low = {}, high = {};  // its interval
  /// Two-sided: the probability of a difference at least as large if the true difference is 0.
  std::optional<double> p = {};
};
/// Value i and baseline i belong together: runs with equal seeds see equal batches. Where no pair differs at
/// all, p is 1. Throws std::invalid_argument for no pairs, or lists of unequal length.
PairedTest paired_t_test(std::span<const double> values, std::span<const double> baseline);

/// Holm's step-down correction (Holm 1979). With m tests, the i-th smallest p is multiplied by m - i + 1,
/// raised to the largest result before it, and limited to 1. The results are in the order of the input.
std::vector<double> holm_corrected(std::span<const double> p);
/// Benjamini and Hochberg's correction (Benjamini & Hochberg 1995). With m tests, the i-th smallest p is
/// multiplied by m / i, and lowered to the least result after it. The results are in the order of the input.
std::vector<double> benjamini_hochberg_corrected(std::span<const double> p);

/// What a correction for several tests holds to 5 %.
///   holm                the chance of any false difference
///   benjamini_hochberg  the expected share of false differences among all that are found
enum class Correction { holm, benjamini_hochberg };
constexpr auto config_names(Correction) {
  return std::to_array<std::string_view>({"holm", "benjamini_hochberg"});
}
/// The corrected p of those that are there, in their places.
std::vector<std::optional<double>> corrected_known(Correction correction,
                                                   const std::vector<std::optional<double>>& p);

/// The probability of a difference this close to 0 if the true difference is as large as `margin` (two
/// one-sided tests, Schuirmann 1987). Where it is small, the rows are equivalent up to the margin. Absent
/// where the spread of the differences is unknown.
std::optional<double> equivalence_p(const PairedTest& test, double margin);

/// The result of comparing a row with its baseline.
enum class Verdict {
  better,
  worse,
  same,       // the difference is smaller than the margin
  undecided,  // neither is known: more seeds would tell
  untested,   // nothing shows the spread
  unsteady,   // one of the rows learnt with some seeds only: a mean of the others would flatter it
  unfair,     // the rows differ in more than their subject, so a difference would mean nothing
};
constexpr auto config_names(Verdict) {
  return std::to_array<std::string_view>(
      {"better", "worse", "same", "undecided", "untested", "unsteady", "unfair"});
}
/// `p` and `p_same`: the corrected results of paired_t_test() and equivalence_p(). A difference that is
/// significant counts even where it is smaller than the margin.
Verdict verdict(const PairedTest& test, std::optional<double> p, std::optional<double> p_same, Better better);

/// One of several tests, and the margin of its equivalence_p().
struct MarginTest {
  PairedTest test;
  double margin = 0;
};
/// What a test says among others.
struct Judgement {
  std::optional<double> p_corrected = {}, p_same = {};  // both corrected
  Verdict verdict = Verdict::untested;
};
/// Corrects the tests of differences for each other, and those of equivalences, which are two families. One
/// judgement for each test.
std::vector<Judgement> judged(const std::vector<MarginTest>& tests, Correction correction, Better better);

}  // namespace zoo
