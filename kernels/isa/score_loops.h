#pragma once
// Rows of attention scores. Their widths are multiples of kWidestVector.

#include "kernels/isa/kernels.h"
#include "kernels/isa/row_loops.h"

namespace zoo {
namespace {

void transpose(const float* x, int64_t x_stride, int64_t n_rows, int64_t n_columns, float* to,
               int64_t to_stride) {
  for (int64_t first = 0; first < n_rows; first += kWidestVector) {
    const int64_t end = std::min(first + kWidestVector, n_rows);
    for (int64_t j = 0; j < n_columns; ++j)
      for (int64_t i = first; i < end; ++i) to[j * to_stride + i] = x[i * x_stride + j];
  }
}

template <class Isa>
float largest(const float* x, int64_t n) {
  auto lanes = Isa::load(x);
  for (int64_t i = Isa::kLanes; i < n; i += Isa::kLanes) {
    const auto next = Isa::load(x + i);
    lanes = lanes > next ? lanes : next;
  }
  return Isa::largest(lanes);
}

template <class Isa>
float dot(const float* x, const float* y, int64_t n) {
  typename Isa::Floats lanes = {};
  for (int64_t i = 0; i < n; i += Isa::kLanes) lanes += Isa::load(x + i) * Isa::load(y + i);
  return Isa::sum(lanes);
}

/// A result below 1e-37 becomes 0.
template <class Isa>
float exponentials(float* x, int64_t n, float scale, float shift) {
  using Floats = typename Isa::Floats;
  constexpr float least = -85.0F;
  Floats lanes = {};
  for (int64_t i = 0; i < n; i += Isa::kLanes) {
    const Floats score = Isa::load(x + i) * scale - shift;
    const Floats weight = score < least ? Floats{} : exp_within_range<typename Isa::Bits>(score);
    Isa::store(x + i, weight);
    lanes += weight;
  }
  return Isa::sum(lanes);
}

void softmax_backward(float* gradient, const float* weights, int64_t n, float delta, float scale) {
  for (int64_t i = 0; i < n; ++i) gradient[i] = weights[i] * (gradient[i] - delta) * scale;
}

template <class Isa>
constexpr ScoreKernels score_kernels() {
  return {.transpose = transpose,
          .largest = largest<Isa>,
          .dot = dot<Isa>,
          .exponentials = exponentials<Isa>,
          .backward = softmax_backward};
}

}  // namespace
}  // namespace zoo
