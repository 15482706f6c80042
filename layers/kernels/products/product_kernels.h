#pragma once
// The innermost loops of the products, compiled for each set of instructions.

#include <cstdint>

#include "layers/kernels/products/panels.h"

namespace zoo {

/// sums (R, 32) += R rows of x times the next inputs of a panel.
using FloatKernel = void (*)(const uint8_t* weights, FloatRows x, int64_t n_inputs, float* sums);
using IntegerKernel = void (*)(const uint8_t* weights, const IntegerRows& x, int64_t n_groups, float* sums);
/// The next inputs of a panel in fp32: tile (n_inputs, 32).
using TileKernel = void (*)(const uint8_t* weights, int64_t n_inputs, float* tile);
/// y (R, P): R rows of x times P consecutive rows of a matrix in fp32.
using DotKernel = void (*)(const float* weights, int64_t n_inputs, FloatRows x, float* y, int64_t y_stride);

inline constexpr int kMostFloatRows = 12, kMostIntegerRows = 6, kDotRows = 4;
/// P of the DotKernels.
inline constexpr int kDotOutputs = 4;

/// Entry R - 1 is for R rows.
struct ProductKernels {
  int float_rows, integer_rows;  // the entries that there are
  FloatKernel fp32[kMostFloatRows] = {}, bf16[kMostFloatRows] = {}, fp16[kMostFloatRows] = {};
  IntegerKernel int8[kMostIntegerRows] = {}, int4[kMostIntegerRows] = {};
  TileKernel bf16_tile = nullptr, fp16_tile = nullptr;
  DotKernel dots[kDotRows] = {}, last_dots[kDotRows] = {};  // for P = kDotOutputs, and for P = 1
};

const ProductKernels& portable_kernels();
/// Only for processors that have the path; the portable ones if the compiler does not know the instructions.
const ProductKernels& avx2_kernels();
const ProductKernels& avx512_kernels();

}  // namespace zoo
