#pragma once
// Products y = x Wᵀ + b on the CPU, written for few rows of x, where reading W takes most of the time: for up
// to 192 rows W is read once, from its first byte to its last, by all threads.
//
// A row of y depends on its row of x only: not on other rows, nor on their number, nor on the number of
// threads. Products with a matrix in integers first round the inputs to whole numbers from -127 to 127 with a
// scale for each group of 32, and then sum whole numbers; all paths give the same sums of a group.

#include <torch/types.h>

#include "kernels/isa/paths.h"
#include "kernels/products/packed_matrix.h"

namespace zoo {

/// Outputs `first` … `first` + `count` - 1.
struct OutputRange {
  int64_t first, count;
};

/// x (…, I) float on the CPU, bias (count) float or undefined. Returns (…, count). No gradients are recorded.
torch::Tensor packed_product(const torch::Tensor& x, const PackedMatrix& matrix, const torch::Tensor& bias,
                             OutputRange outputs, CpuPath path = best_path());
torch::Tensor packed_product(const torch::Tensor& x, const PackedMatrix& matrix,
                             const torch::Tensor& bias = {}, CpuPath path = best_path());

/// The most rows for which rows_product() is meant. With more, LibTorch's product is faster.
inline constexpr int64_t kMostRows = 64;

/// The same for a weight (O, I) float, contiguous.
torch::Tensor rows_product(const torch::Tensor& x, const torch::Tensor& weight,
                           const torch::Tensor& bias = {}, CpuPath path = best_path());

}  // namespace zoo
