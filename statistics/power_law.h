#pragma once
// Loss against compute: a power law through runs of several sizes.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace zoo {

/// One run of a variant, which is given by its number.
struct LossPoint {
  int64_t variant = 0;
  double flops = 0;
  double loss = 0;
};

/// A value with its 95 % interval. A bound is absent where the points do not bound it.
struct Estimate {
  double value = 0;
  std::optional<double> low = {}, high = {};
};

/// loss = A · flops^(-exponent), fitted as a straight line through the logarithms. It holds within the range
/// of the points: beyond it, losses approach a limit above 0, which a few sizes cannot show.
struct PowerLaw {
  Estimate exponent;  // > 0 where the loss falls
  double scale = 0;   // A
};

/// The fit of several variants with an exponent of their own, and with one that they share.
struct ScalingFit {
  std::vector<PowerLaw> own;  // by variant
  Estimate shared_exponent;
  /// The compute that a variant needs for the loss of variant 0, as a multiple of variant 0's: of lines with
  /// the shared exponent, so that the ratio is the same at every loss. By variant; 1 for variant 0.
  std::vector<Estimate> compute_ratios;
  /// The probability of exponents that differ at least as much if all are equal (F-test).
  std::optional<double> p_equal_exponents;
};

/// Every one of the `n_variants` needs points at two or more different numbers of FLOPs; losses and FLOPs are
/// positive. Throws std::invalid_argument. Intervals of ratios are Fieller's (1954).
ScalingFit fit_scaling(std::span<const LossPoint> points, int64_t n_variants);

}  // namespace zoo
