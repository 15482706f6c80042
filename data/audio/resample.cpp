#include "data/audio/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace zoo {
namespace {

constexpr double kZeros = 6, kRolloff = 0.99;

/// Output n lies at the place n · from / to among the input's samples.
class Kernel {
 public:
  Kernel(int64_t from, int64_t to)
      : cutoff_(static_cast<double>(std::min(from, to)) * kRolloff / static_cast<double>(from)),
        reach_(static_cast<int64_t>(std::ceil(kZeros / cutoff_))) {}

  /// The inputs from -reach() to +reach() around a place may have a weight.
  int64_t reach() const { return reach_; }
  /// The weight of an input at this distance from the place.
  double operator()(double distance) const {
    const double t = std::clamp(distance * cutoff_, -kZeros, kZeros);
    const double root = std::cos(t * std::numbers::pi / kZeros / 2), angle = t * std::numbers::pi;
    return cutoff_ * root * root * (angle == 0 ? 1 : std::sin(angle) / angle);
  }

 private:
  double cutoff_;
  int64_t reach_;
};

}  // namespace

int64_t resampled_length(int64_t n, int64_t from, int64_t to) {
  const int64_t common = std::gcd(from, to);
  from /= common, to /= common;
  return (n * to + from - 1) / from;
}

std::vector<float> resample(std::span<const float> samples, int64_t from, int64_t to) {
  const int64_t common = std::gcd(from, to);
  from /= common, to /= common;
  if (from == to) return {samples.begin(), samples.end()};
  const Kernel kernel(from, to);
  const int64_t n = std::ssize(samples), reach = kernel.reach(), width = 2 * reach + 2;
  const auto weights_at = [&](int64_t phase, double* weights) {
    // Places are between two inputs: `phase` of `to` parts behind the first.
    const double place = static_cast<double>(phase) / static_cast<double>(to);
    for (int64_t k = 0; k < width; ++k) weights[k] = kernel(static_cast<double>(k - reach) - place);
  };
  // Outputs of the same phase have the same weights.
  constexpr int64_t most_phases = 2048;
  const bool has_table = to <= most_phases;
  std::vector<double> table(static_cast<size_t>(width * (has_table ? to : 1)));
  for (int64_t phase = 0; has_table && phase < to; ++phase) weights_at(phase, table.data() + phase * width);

  std::vector<float> result(static_cast<size_t>(resampled_length(n, from, to)));
  for (int64_t i = 0; i < std::ssize(result); ++i) {
    const int64_t centre = i * from / to, phase = i * from % to, first = centre - reach;
    if (!has_table) weights_at(phase, table.data());
    const double* const weights = table.data() + (has_table ? phase * width : 0);
    double sum = 0;
    const int64_t end = std::min(width, n - first);
    for (int64_t k = std::max<int64_t>(0, -first); k < end; ++k)
      sum += weights[k] * static_cast<double>(samples[static_cast<size_t>(first + k)]);
    result[static_cast<size_t>(i)] = static_cast<float>(sum);
  }
  return result;
}

}  // namespace zoo
