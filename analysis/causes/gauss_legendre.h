#pragma once

#include <cstdint>
#include <vector>

namespace zoo {

/// Points and weights of an integral from 0 to 1: ∫ f ≈ Σ weight · f(at), exact for polynomials up to degree
/// 2n - 1.
struct IntegralPoint {
  double at, weight;
};
/// The n ≥ 1 points of Gauss and Legendre, in order.
std::vector<IntegralPoint> gauss_legendre(int64_t n);

}  // namespace zoo
