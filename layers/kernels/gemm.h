#pragma once
// gemm for matrices that fit into a cache, on 512-bit vectors. Libraries first pack A and B, which takes a
// quarter of their time where the matrices are small; this gemm reads both in place.

#include <cstdint>

#include "layers/kernels/vector_kernels.h"

namespace zoo {

/// A (M, K): element (m, k) is at data[m·row_stride + k·column_stride]; either stride may be 1.
struct MatrixA {
  const float* data;
  int64_t row_stride, column_stride;
};

/// B (K, N): row k begins at data + k·row_stride.
struct MatrixB {
  const float* data;
  int64_t row_stride;
};

/// C (M, N): row m begins at data + m·row_stride.
struct MatrixC {
  float* data;
  int64_t row_stride;
};

/// β in C := A·B + β·C.
enum class Beta { zero, one };

/// Floats in a vector; N is a multiple of it.
inline constexpr int64_t kVectorWidth = 16;

using FloatVector [[gnu::may_alias]] =
    float __attribute__((vector_size(kVectorWidth * sizeof(float)), aligned(alignof(float))));

/// Computes R rows of 16·V columns of C. Their sums stay in registers, at most 24 of the 32, while the K rows
/// of B are read.
template <int R, int V, Beta beta>
ZOO_AVX512 inline void gemm_block(MatrixA a, MatrixB b, int64_t k, MatrixC c) {
  FloatVector sums[R][V] = {};
  if constexpr (beta == Beta::one) {
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < V; ++j)
        sums[r][j] = *reinterpret_cast<const FloatVector*>(c.data + r * c.row_stride + kVectorWidth * j);
  }
  for (; k > 0; --k, a.data += a.column_stride, b.data += b.row_stride) {
    FloatVector columns[V];
    for (int j = 0; j < V; ++j) columns[j] = *reinterpret_cast<const FloatVector*>(b.data + kVectorWidth * j);
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < V; ++j) sums[r][j] += a.data[r * a.row_stride] * columns[j];
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < V; ++j)
      *reinterpret_cast<FloatVector*>(c.data + r * c.row_stride + kVectorWidth * j) = sums[r][j];
}

/// Computes R rows of C.
template <int R, Beta beta>
ZOO_AVX512 void gemm_rows(MatrixA a, MatrixB b, int64_t k, MatrixC c, int64_t n) {
  int64_t j = 0;
  for (; j + 2 * kVectorWidth <= n; j += 2 * kVectorWidth)
    gemm_block<R, 2, beta>(a, {b.data + j, b.row_stride}, k, {c.data + j, c.row_stride});
  if (j < n) gemm_block<R, 1, beta>(a, {b.data + j, b.row_stride}, k, {c.data + j, c.row_stride});
}

/// C := A·B + β·C with A (m, k), B (k, n) and C (m, n); n is a multiple of 16.
template <Beta beta>
ZOO_AVX512 void gemm(MatrixA a, MatrixB b, int64_t k, MatrixC c, int64_t m, int64_t n) {
  const auto skip = [&](int64_t count) {
    a.data += count * a.row_stride;
    c.data += count * c.row_stride;
    return count;
  };
  while (m >= 12) gemm_rows<12, beta>(a, b, k, c, n), m -= skip(12);
  if (m >= 8) gemm_rows<8, beta>(a, b, k, c, n), m -= skip(8);
  if (m >= 4) gemm_rows<4, beta>(a, b, k, c, n), m -= skip(4);
  if (m >= 2) gemm_rows<2, beta>(a, b, k, c, n), m -= skip(2);
  if (m >= 1) gemm_rows<1, beta>(a, b, k, c, n);
}

}  // namespace zoo
