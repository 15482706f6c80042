#pragma once
// What can be said of a metric that was measured with a few seeds: an interval, and whether two rows of a
// table differ.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace zoo {

/// Of every interval.
inline constexpr double kConfidence = 0.95;
/// A difference counts where its corrected p is below this.
inline constexpr double kSignificance = 0.05;

/// The mean of n values and Student's interval of it (Student 1908).
struct Interval {
  double mean = 0;
  std::optional<double> low = {}, high = {};  // absent for a single value
  std::optional<double> deviation =
      {};  // standard deviation of one value, n - 1 in the denominator; the same
  int64_t n = 0;
};
/// `values`: finite. Throws std::invalid_argument where there are none.
Interval mean_interval(std::span<const double> values);

/// Student's paired t-test. All but the difference are absent where nothing shows how differences spread: for
/// a single pair, and where all pairs differ by the same amount, as those of a metric that counts may.
struct PairedTest {
  double difference = 0;                      // mean of values - baseline
  std::optional<double> low = {}, high = {};  // its interval
  std::optional<double> p = {};  // two-sided: how likely a difference as large is if there is none in truth
};
/// Value i and baseline i belong together: runs with equal seeds see equal batches. Where no pair
/// differs at all, p is 1. Throws std::invalid_argument for no
/// pairs, or lists that are not equally long.
PairedTest paired_t_test(std::span<const double> values, std::span<const double> baseline);

/// Holm's step-down correction (Holm 1979): with m tests, the i-th smallest p times m - i + 1, no smaller
/// than those before it, at most 1; in the order of the input.
std::vector<double> holm_corrected(std::span<const double> p);

/// Which of two values of a metric is the better one.
enum class Better { lower, higher };
constexpr auto config_names(Better) { return std::to_array<std::string_view>({"lower", "higher"}); }

/// What a test says of a row against the first.
enum class Verdict { better, worse, same, untested };
constexpr auto config_names(Verdict) {
  return std::to_array<std::string_view>({"better", "worse", "same", "untested"});
}
/// `difference`: row - first row. `same` means not significantly different; without a p nothing is said.
Verdict verdict(double difference, std::optional<double> p_corrected, Better better);

/// P(T <= t) for Student's t with `degrees` > 0 degrees of freedom, which need not be whole.
double student_t_cdf(double t, double degrees);
/// P(|T| >= |t|): accurate where it is tiny, too.
double student_t_tails(double t, double degrees);
/// The t with student_t_cdf(t) = p. Throws std::invalid_argument unless 0 < p < 1.
double student_t_quantile(double p, double degrees);

}  // namespace zoo
