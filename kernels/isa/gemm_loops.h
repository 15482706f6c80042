#pragma once
// gemm for matrices that fit into a cache. Libraries first pack A and B, which takes a quarter of their time
// where the matrices are small; this gemm reads both in place. The sum of an element of C is the same
// sequence of operations, wherever it stands.

#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

/// β in C := A·B + β·C.
enum class Beta { zero, one };

/// Computes R rows of V vectors of C. Their sums stay in registers while the K rows of B are read.
template <class Isa, Beta beta, int R, int V>
void gemm_block(MatrixA a, MatrixB b, int64_t k, MatrixC c) {
  typename Isa::Floats sums[R][V] = {};
  if constexpr (beta == Beta::one) {
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < V; ++j) sums[r][j] = Isa::load(c.data + r * c.row_stride + j * Isa::kLanes);
  }
  for (; k > 0; --k, a.data += a.column_stride, b.data += b.row_stride) {
    typename Isa::Floats columns[V];
    for (int j = 0; j < V; ++j) columns[j] = Isa::load(b.data + j * Isa::kLanes);
    for (int r = 0; r < R; ++r)
      for (int j = 0; j < V; ++j) sums[r][j] += a.data[r * a.row_stride] * columns[j];
  }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < V; ++j) Isa::store(c.data + r * c.row_stride + j * Isa::kLanes, sums[r][j]);
}

/// Computes R rows of C at a time, then the rest in fewer.
template <class Isa, Beta beta, int R>
void gemm_rows(MatrixA a, MatrixB b, int64_t k, MatrixC c, int64_t m, int64_t n) {
  constexpr int64_t pair = 2 * Isa::kLanes;
  for (; m >= R; m -= R, a.data += R * a.row_stride, c.data += R * c.row_stride) {
    int64_t j = 0;
    for (; j + pair <= n; j += pair)
      gemm_block<Isa, beta, R, 2>(a, {b.data + j, b.row_stride}, k, {c.data + j, c.row_stride});
    if constexpr (pair > kWidestVector) {
      if (j < n) gemm_block<Isa, beta, R, 1>(a, {b.data + j, b.row_stride}, k, {c.data + j, c.row_stride});
    }
  }
  if constexpr (R > 1) gemm_rows<Isa, beta, std::bit_floor(R - 1U)>(a, b, k, c, m, n);
}

template <class Isa, Beta beta>
void gemm(MatrixA a, MatrixB b, int64_t k, MatrixC c, int64_t m, int64_t n) {
  gemm_rows<Isa, beta, Isa::kFloatRows>(a, b, k, c, m, n);
}

}  // namespace
}  // namespace zoo
