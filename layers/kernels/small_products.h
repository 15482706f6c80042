#pragma once
// Products of matrices that fit into a cache: C = A·B or C += A·B, on 512-bit vectors. Libraries first copy
// both into another order, which costs them a quarter of the time where the matrices are small; here they are
// read as they lie.

#include <cstdint>

#include "layers/kernels/vector_kernels.h"

namespace zoo::small_products {

/// A (M, K): element (m, k) is at data[m·row + k·step]; either may be 1.
struct Left {
  const float* data;
  int64_t row, step;
};

/// B (K, N): row k begins at data + k·row.
struct Right {
  const float* data;
  int64_t row;
};

/// C (M, N): row m begins at data + m·row.
struct Result {
  float* data;
  int64_t row;
};

/// What the product is added to.
enum class AddTo { zero, result };

inline constexpr int64_t kVector = 16;  // floats; N is a multiple of it

using Vector [[gnu::may_alias]] =
    float __attribute__((vector_size(kVector * sizeof(float)), aligned(alignof(float))));

/// A block of C, R rows of 16·V columns, stays in registers while the K rows of B go by: 24 of the 32 there
/// are.
template <int R, int V, AddTo add_to>
ZOO_AVX512 inline void block(Left a, Right b, int64_t k, Result c) {
  Vector sums[R][V] = {};
  if constexpr (add_to == AddTo::result) {
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < V; ++j)
        sums[r][j] = *reinterpret_cast<const Vector*>(c.data + r * c.row + kVector * j);
  }
  for (; k > 0; --k, a.data += a.step, b.data += b.row) {
    Vector columns[V];
    for (int j = 0; j < V; ++j) columns[j] = *reinterpret_cast<const Vector*>(b.data + kVector * j);
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < V; ++j) sums[r][j] += a.data[r * a.row] * columns[j];
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < V; ++j) *reinterpret_cast<Vector*>(c.data + r * c.row + kVector * j) = sums[r][j];
}

template <int R, AddTo add_to>
ZOO_AVX512 void rows(Left a, Right b, int64_t k, Result c, int64_t n) {
  int64_t j = 0;
  for (; j + 2 * kVector <= n; j += 2 * kVector)
    block<R, 2, add_to>(a, {b.data + j, b.row}, k, {c.data + j, c.row});
  if (j < n) block<R, 1, add_to>(a, {b.data + j, b.row}, k, {c.data + j, c.row});
}

/// C (m, n) of A (m, k) and B (k, n); n a multiple of 16.
template <AddTo add_to>
ZOO_AVX512 void product(Left a, Right b, int64_t k, Result c, int64_t m, int64_t n) {
  const auto skip = [&](int64_t count) {
    a.data += count * a.row;
    c.data += count * c.row;
    return count;
  };
  while (m >= 12) rows<12, add_to>(a, b, k, c, n), m -= skip(12);
  if (m >= 8) rows<8, add_to>(a, b, k, c, n), m -= skip(8);
  if (m >= 4) rows<4, add_to>(a, b, k, c, n), m -= skip(4);
  if (m >= 2) rows<2, add_to>(a, b, k, c, n), m -= skip(2);
  if (m >= 1) rows<1, add_to>(a, b, k, c, n);
}

}  // namespace zoo::small_products
