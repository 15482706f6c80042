#pragma once
// How likely a paired t-test finds a difference, and how many seeds it needs.

#include <cstdint>
#include <optional>

namespace zoo {

/// The share of the differences of this size that a comparison should find.
inline constexpr double kPower = 0.8;

/// The probability that `n_pairs` >= 2 pairs show a difference of `effect` standard deviations of the paired
/// differences, where the smallest of `n_tests` p-values is compared with 0.05 / n_tests, as Holm's method
/// does.
double power_of_test(double effect, int64_t n_pairs, int64_t n_tests);

/// The smallest number of pairs with a power of at least kPower; nothing beyond 1000.
std::optional<int64_t> pairs_needed(double effect, int64_t n_tests);

}  // namespace zoo
