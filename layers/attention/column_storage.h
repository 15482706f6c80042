#pragma once
// Keys or values of several rows, (B, K, columns, D), with room for more columns.

#include <cstdint>

#include <torch/types.h>

namespace zoo {

/// The first `n` columns of `x` in a storage of `capacity` columns, with zeros behind them. Columns that are
/// never written must not have a NaN, which would spread, because 0 · NaN is NaN.
torch::Tensor with_capacity(const torch::Tensor& x, int64_t n, int64_t capacity);

/// The rows of `a`, then the rows of `b`, padded with zeros to the same number of columns.
torch::Tensor joined_rows(const torch::Tensor& a, const torch::Tensor& b);

/// `n_rows` rows without columns, as `like` otherwise.
torch::Tensor rows_without_columns(int64_t n_rows, const torch::Tensor& like);

}  // namespace zoo
