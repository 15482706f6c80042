#pragma once
// All loops, for one set of instructions. A source includes this header after it has told the compiler which
// instructions it may use (target.h). The compiler makes vectors of plain loops. Loops that depend on
// registers use a class Isa, which has the types and functions of Vectors (vectors.h) and these:
//
//   kFloatRows, kIntRows the most rows whose sums fit into the registers
//   sum, largest         of the lanes of a vector
//   load_halves          as many floats from fp16
//   dot_int8, dot_int4   to each lane of a sum, the products of four weights without sign and four inputs
//   kInt8Offset          what dot_int8() leaves in a sum for each unit of input: 128, or 0 if it removes it

#include "kernels/isa/dropout_loops.h"
#include "kernels/isa/few_queries_loops.h"
#include "kernels/isa/format_loops.h"
#include "kernels/isa/gemm_loops.h"
#include "kernels/isa/kernels.h"
#include "kernels/isa/panel_loops.h"
#include "kernels/isa/row_loops.h"
#include "kernels/isa/score_loops.h"
#include "kernels/isa/vectors.h"

namespace zoo {
namespace {

template <class Isa>
constexpr Kernels kernels_of() {
  return {.products = product_kernels<Isa>(),
          .gemm = gemm<Isa, Beta::zero>,
          .add_gemm = gemm<Isa, Beta::one>,
          .scores = score_kernels<Isa>(),
          .attend_fp32 = attend<float>,
          .attend_bf16 = attend<uint16_t>,
          .attend_int8 = attend<int8_t>,
          .gelu_exact = gelu<exact>,
          .gelu_by_tanh = gelu<by_tanh>,
          .swiglu = swiglu,
          .swiglu_backward = swiglu_backward,
          .rms_norm = rms_norm,
          .rms_norm_backward = rms_norm_backward,
          .cross_entropy = cross_entropy,
          .rotate_halves = rotate_halves,
          .rotate_interleaved = rotate_interleaved,
          .dropout = dropout,
          .add = add,
          .multiply = multiply,
          .sum_of_squares = sum_of_squares,
          .store_bf16 = store_bf16,
          .load_bf16 = load_bf16,
          .store_int8 = store_int8,
          .load_int8 = load_int8,
          .round_groups = round_groups,
          .fit_int4 = fit_int4};
}

}  // namespace
}  // namespace zoo
