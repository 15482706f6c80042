#include "statistics/power.h"

#include <algorithm>
#include <cmath>

#include "base/student_t.h"
#include "statistics/paired_test.h"

namespace zoo {

double power_of_test(double effect, int64_t n_pairs, int64_t n_tests) {
  const auto n = static_cast<double>(n_pairs);
  const double threshold = kSignificance / static_cast<double>(n_tests);
  const double t = student_t_quantile(1 - threshold / 2, n - 1);
  return noncentral_t_tails(t, n - 1, std::abs(effect) * std::sqrt(n));
}

std::optional<int64_t> pairs_needed(double effect, int64_t n_tests) {
  constexpr int64_t most = 1000;
  if (power_of_test(effect, most, n_tests) < kPower) return std::nullopt;
  int64_t too_few = 1, enough = 2;
  while (power_of_test(effect, enough, n_tests) < kPower) {
    too_few = enough;
    enough = std::min(2 * enough, most);
  }
  while (enough - too_few > 1) {
    const int64_t middle = (enough + too_few) / 2;
    (power_of_test(effect, middle, n_tests) < kPower ? too_few : enough) = middle;
  }
  return enough;
}

}  // namespace zoo
