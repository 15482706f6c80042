#include "analysis/causes/gauss_legendre.h"

#include <cmath>
#include <numbers>

namespace zoo {
namespace {

/// The Legendre polynomial of degree n ≥ 1 at x, and its slope.
struct Legendre {
  Legendre(int64_t n, double x) {
    double before = 1;
    value = x;
    for (int64_t k = 2; k <= n; ++k) {
      const auto d = static_cast<double>(k);
      const double next = ((2 * d - 1) * x * value - (d - 1) * before) / d;
      before = value;
      value = next;
    }
    slope = static_cast<double>(n) * (x * value - before) / (x * x - 1);
  }
  double value, slope;
};

}  // namespace

std::vector<IntegralPoint> gauss_legendre(int64_t n) {
  constexpr int newton_steps = 8;  // from these beginnings, five reach the precision of a double
  std::vector<IntegralPoint> points;
  for (int64_t i = n; i >= 1; --i) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(i) - 0.25) / (static_cast<double>(n) + 0.5));
    for (int step = 0; step < newton_steps; ++step) {
      const Legendre p(n, x);
      x -= p.value / p.slope;
    }
    const double slope = Legendre(n, x).slope;
    points.push_back({.at = (x + 1) / 2, .weight = 1 / ((1 - x * x) * slope * slope)});
  }
  return points;
}

}  // namespace zoo
