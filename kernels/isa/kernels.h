#pragma once
// The innermost loops of the layers. They are written once, in the headers *_loops.h beside this one, and
// compiled for each set of instructions (paths.h). All pointers are to numbers one after the other.

// Those of all loops, because they belong before a target (target.h).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/isa/panels.h"
#include "kernels/isa/paths.h"

namespace zoo {

// Products with a matrix in panels (panels.h).

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

/// How well whole numbers represent the weights of a group.
struct Fit {
  float products = 0, squares = 0;  // Σ w·n, Σ n²

  /// By how much the numbers, with the best scale, reduce the sum of squares.
  float gain() const { return squares > 0 ? products * products / squares : 0; }
};

// Matrices that fit into a cache.

/// Floats in the widest vector. The widths of matrices and of rows of scores are multiples of it.
inline constexpr int64_t kWidestVector = 16;

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

using Gemm = void (*)(MatrixA a, MatrixB b, int64_t k, MatrixC c, int64_t m, int64_t n);

/// Rows of n attention scores, weights or their gradients.
struct ScoreKernels {
  /// to (n_columns, at least n_rows) := the transpose of x (n_rows, n_columns).
  void (*transpose)(const float* x, int64_t x_stride, int64_t n_rows, int64_t n_columns, float* to,
                    int64_t to_stride);
  float (*largest)(const float* x, int64_t n);
  float (*dot)(const float* x, const float* y, int64_t n);
  /// x := e^(scale·x - shift), at most 1 apart from rounding; returns the sum.
  float (*exponentials)(float* x, int64_t n, float scale, float shift);
  /// Turns the gradient of the weights into the gradient of the scores: weight·(gradient - delta)·scale.
  void (*backward)(float* gradient, const float* weights, int64_t n, float delta, float scale);
};

// Few queries over many keys.

/// Columns of a block of keys and values. When a row goes on whose last block others share, it copies this
/// block, up to 15 columns: beams do so at nearly every step. Attention looks up one address for each block,
/// which costs little beside the 16 vectors that it reads.
inline constexpr int64_t kBlockColumns = 16;

/// One head of a block of keys and values: floats, the upper halves of floats, or int8.
template <class Number>
struct HeadBlock {
  const Number *keys, *values;
  const float *key_scales, *value_scales;  // of int8
};

/// Queries that see the same keys of one head.
struct QueryGroup {
  const float* queries;  // of the first head; the others follow at query_stride
  const float* bias;     // of key 0 and the first query; may be null
  float* outputs;        // of the first query; the others follow one after the other
  int64_t n_queries, query_stride, key_stride, value_stride, bias_stride, key_bias_stride;
  int64_t key_width, value_width;
  float scale, softcap;
};

/// Attention to the keys of these numbers. `scores` has room for (n_queries, n_keys).
template <class Number>
using AttendKernel = void (*)(const QueryGroup& group, const HeadBlock<Number>* blocks, const int64_t* keys,
                              int64_t n_keys, float* scores);

// Rows.

/// Writes `slope`, too, unless it is null.
using GeluKernel = void (*)(const float* x, float* y, float* slope, int64_t n);
/// Pair i of a row becomes (a·c - b·s, b·c + a·s) with the cosine c and the sine s of its angle. Direction -1
/// is the inverse rotation.
using RotaryKernel = void (*)(const float* x, const float* cos, const float* sin, float direction, float* y,
                              int64_t n_pairs);

/// Elements of a stretch of a tensor that a call of the generator of dropout serves.
inline constexpr int64_t kDropoutBlock = 128;

/// An element is dropped if its 16 random bits are below `threshold`; others are multiplied by `scale`.
struct DropoutMask {
  uint64_t seed;
  uint32_t threshold;
  float scale;
};

struct Kernels {
  ProductKernels products;
  Gemm gemm, add_gemm;  // C := A·B and C += A·B with A (m, k), B (k, n), C (m, n)
  ScoreKernels scores;
  AttendKernel<float> attend_fp32;
  AttendKernel<uint16_t> attend_bf16;
  AttendKernel<int8_t> attend_int8;

  GeluKernel gelu_exact, gelu_by_tanh;
  void (*swiglu)(const float* gate, const float* up, float* out, int64_t n);
  void (*swiglu_backward)(const float* gate, const float* up, const float* gradient, float* gate_gradient,
                          float* up_gradient, int64_t n);
  /// y := γ ⊙ x · s for one row, s = 1/√(mean(x²)+ε); returns s.
  float (*rms_norm)(const float* x, const float* gain, float* y, int64_t n, double eps);
  /// Writes the gradient of x and adds to the gradient of γ.
  void (*rms_norm_backward)(const float* x, const float* gain, const float* gradient, float scale,
                            float* x_gradient, float* gain_gradient, int64_t n);
  /// Returns the loss of one row of logits times `weight` and replaces the logits by its gradient.
  double (*cross_entropy)(float* x, int64_t n_classes, int64_t target, double smoothing, double weight);
  RotaryKernel rotate_halves, rotate_interleaved;
  /// out = y ⊙ factors, or x + y ⊙ factors if x is not null, for the elements [begin, end) of a stretch;
  /// begin is a multiple of kDropoutBlock. `place` tells the stretch from others.
  void (*dropout)(const DropoutMask& mask, uint64_t place, const float* x, const float* y, float* out,
                  int64_t begin, int64_t end);
  void (*add)(float* sum, const float* term, int64_t n);
  void (*multiply)(float* x, float factor, int64_t n);
  double (*sum_of_squares)(const float* x, int64_t n);

  // Other formats of numbers.
  void (*store_bf16)(const float* from, uint16_t* to, int64_t n);
  void (*load_bf16)(const uint16_t* from, float* to, int64_t n);
  float (*store_int8)(const float* from, int8_t* to, int64_t n);  // returns the scale
  void (*load_int8)(const int8_t* from, float scale, float* to, int64_t n);
  /// Whole numbers from -127 to 127 for groups of 32 floats, with their scale and sum (IntegerRows).
  void (*round_groups)(const float* x, int64_t n_groups, int8_t* numbers, float* scales, int32_t* sums);
  /// The fit of the whole numbers in -8 … 7 nearest to w · inverse, for a group of 32 weights.
  Fit (*fit_int4)(const float* w, float inverse);
};

/// Throws c10::Error unless has_path(path).
const Kernels& kernels(CpuPath path = best_path());

/// Those of one path. Only an x86 processor has the last two.
const Kernels& portable_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();

}  // namespace zoo
