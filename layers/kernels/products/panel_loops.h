#pragma once
// The loops of the products, for any set of instructions. A source includes this header after it has told the
// compiler which instructions it may use (target.h), and gives the loops a class Isa:
//
//   kLanes               floats in a vector: 16, 8 or 4
//   Floats, Ints         a vector of floats; one of as many 32-bit integers, or of four times as many bytes
//   kFloatRows, kIntRows the most rows whose sums fit into the registers
//   kInt8Offset          what dot_int8() leaves in a sum for each unit of input: 128, or 0 if it removes it
//   zero, load, store, broadcast, fma (a·b + c), sum (of the lanes), … : see the loops
//
// The sum of an output is the same sequence of operations, whatever the number of rows and outputs that are
// computed together. The result of a row therefore depends on no other row.

#include <cstdint>
#include <cstring>
#include <utility>

#include "layers/kernels/products/panels.h"
#include "layers/kernels/products/product_kernels.h"

namespace zoo {
namespace {  // each source compiles these functions for other instructions

// Panels of floats. load_pair() gives the weights of one input and of outputs h·kLanes … , and those of the
// outputs 16 further on.

struct Fp32Panel {
  static constexpr int64_t kBytes = 4 * kPanel;
  template <class Isa>
  static inline void load_pair(const uint8_t* w, int h, typename Isa::Floats& low,
                               typename Isa::Floats& high) {
    const auto* const floats = reinterpret_cast<const float*>(w) + h * Isa::kLanes;
    low = Isa::load(floats);
    high = Isa::load(floats + kPanel / 2);
  }
};

struct Fp16Panel {
  static constexpr int64_t kBytes = 2 * kPanel;
  template <class Isa>
  static inline void load_pair(const uint8_t* w, int h, typename Isa::Floats& low,
                               typename Isa::Floats& high) {
    low = Isa::load_halves(w + 2 * h * Isa::kLanes);
    high = Isa::load_halves(w + 2 * h * Isa::kLanes + kPanel);
  }
};

struct Bf16Panel {
  static constexpr int64_t kBytes = 2 * kPanel;
  template <class Isa>
  static inline void load_pair(const uint8_t* w, int h, typename Isa::Floats& low,
                               typename Isa::Floats& high) {
    const auto words = Isa::load_bytes(w + 4 * h * Isa::kLanes);
    low = Isa::low_bf16(words);
    high = Isa::high_bf16(words);
  }
};

/// sums (R, 32) += x (R, n) · panel (n, 32)
template <class Isa, class Format, int R>
void float_panel(const uint8_t* weights, FloatRows x, int64_t n_inputs, float* sums) {
  constexpr int kPairs = kPanel / 2 / Isa::kLanes, kAtOnce = R == 1 ? kPairs : 1;
  for (int h = 0; h < kPairs; h += kAtOnce) {
    typename Isa::Floats low[R][kAtOnce], high[R][kAtOnce];
    for (int r = 0; r < R; ++r) {
      for (int a = 0; a < kAtOnce; ++a) {
        low[r][a] = Isa::load(sums + r * kPanel + (h + a) * Isa::kLanes);
        high[r][a] = Isa::load(sums + r * kPanel + (h + a) * Isa::kLanes + kPanel / 2);
      }
    }
    const uint8_t* w = weights;
    for (int64_t k = 0; k < n_inputs; ++k, w += Format::kBytes) {
      for (int a = 0; a < kAtOnce; ++a) {
        typename Isa::Floats w_low, w_high;
        Format::template load_pair<Isa>(w, h + a, w_low, w_high);
        for (int r = 0; r < R; ++r) {
          const auto input = Isa::broadcast(x.data[r * x.stride + k]);
          low[r][a] = Isa::fma(input, w_low, low[r][a]);
          high[r][a] = Isa::fma(input, w_high, high[r][a]);
        }
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int a = 0; a < kAtOnce; ++a) {
        Isa::store(sums + r * kPanel + (h + a) * Isa::kLanes, low[r][a]);
        Isa::store(sums + r * kPanel + (h + a) * Isa::kLanes + kPanel / 2, high[r][a]);
      }
    }
  }
}

template <class Isa, class Format>
void float_tile(const uint8_t* weights, int64_t n_inputs, float* tile) {
  for (int64_t k = 0; k < n_inputs; ++k, weights += Format::kBytes, tile += kPanel) {
    for (int h = 0; h < kPanel / 2 / Isa::kLanes; ++h) {
      typename Isa::Floats low, high;
      Format::template load_pair<Isa>(weights, h, low, high);
      Isa::store(tile + h * Isa::kLanes, low);
      Isa::store(tile + h * Isa::kLanes + kPanel / 2, high);
    }
  }
}

// Panels of integers. dots() adds to `low` and `high` the products of one group of inputs of R rows with
// outputs h·kLanes … and with those 16 further on. scale_pair() gives the scales of the group: those of the
// inputs, times those of the weights if the format has them.

/// The same four bytes in each lane.
template <class Isa>
inline typename Isa::Ints broadcast_quad(const int8_t* p) {
  int32_t quad;
  std::memcpy(&quad, p, sizeof quad);
  return Isa::broadcast(quad);
}

struct Int8Panel {
  static constexpr int64_t kBytes = kInt8Group;
  template <class Isa>
  static constexpr int32_t offset() {
    return Isa::kInt8Offset;
  }
  template <class Isa, int R>
  static inline void dots(const uint8_t* w, int h, const int8_t* x, int64_t stride, typename Isa::Ints* low,
                          typename Isa::Ints* high) {
    for (int quad = 0; quad < 8; ++quad, w += 4 * kPanel, x += 4) {
      const auto w_low = Isa::load_bytes(w + 4 * h * Isa::kLanes);
      const auto w_high = Isa::load_bytes(w + 4 * h * Isa::kLanes + 2 * kPanel);
      for (int r = 0; r < R; ++r) {
        const auto input = broadcast_quad<Isa>(x + r * stride);
        low[r] = Isa::dot_int8(low[r], w_low, input);
        high[r] = Isa::dot_int8(high[r], w_high, input);
      }
    }
  }
  template <class Isa>
  static inline void scale_pair(const uint8_t*, int, typename Isa::Floats x_scale, typename Isa::Floats& low,
                                typename Isa::Floats& high) {
    low = high = x_scale;
  }
};

struct Int4Panel {
  static constexpr int64_t kBytes = kInt4Group;
  template <class Isa>
  static constexpr int32_t offset() {
    return kInt4Offset;
  }
  template <class Isa, int R>
  static inline void dots(const uint8_t* w, int h, const int8_t* x, int64_t stride, typename Isa::Ints* low,
                          typename Isa::Ints* high) {
    w += kInt4Scales;
    for (int quad = 0; quad < 4; ++quad, w += 4 * kPanel, x += 4) {
      const auto w_low = Isa::load_bytes(w + 4 * h * Isa::kLanes);
      const auto w_high = Isa::load_bytes(w + 4 * h * Isa::kLanes + 2 * kPanel);
      const auto low_1 = Isa::low_nibbles(w_low), high_1 = Isa::low_nibbles(w_high);
      const auto low_2 = Isa::high_nibbles(w_low), high_2 = Isa::high_nibbles(w_high);
      for (int r = 0; r < R; ++r) {
        const auto first = broadcast_quad<Isa>(x + r * stride);
        low[r] = Isa::dot_int4(low[r], low_1, first);
        high[r] = Isa::dot_int4(high[r], high_1, first);
        const auto second = broadcast_quad<Isa>(x + r * stride + kGroup / 2);
        low[r] = Isa::dot_int4(low[r], low_2, second);
        high[r] = Isa::dot_int4(high[r], high_2, second);
      }
    }
  }
  template <class Isa>
  static inline void scale_pair(const uint8_t* w, int h, typename Isa::Floats x_scale,
                                typename Isa::Floats& low, typename Isa::Floats& high) {
    low = Isa::mul(x_scale, Isa::load_halves(w + 2 * h * Isa::kLanes));
    high = Isa::mul(x_scale, Isa::load_halves(w + 2 * h * Isa::kLanes + kPanel));
  }
};

/// sums (R, 32) += x (R, groups · 32) · panel (groups · 32, 32)
template <class Isa, class Format, int R>
void integer_panel(const uint8_t* weights, const IntegerRows& x, int64_t n_groups, float* sums) {
  constexpr int kPairs = kPanel / 2 / Isa::kLanes;
  const int64_t stride = x.n_groups * kGroup;
  typename Isa::Floats sums_low[R][kPairs], sums_high[R][kPairs];
  for (int r = 0; r < R; ++r) {
    for (int h = 0; h < kPairs; ++h) {
      sums_low[r][h] = Isa::load(sums + r * kPanel + h * Isa::kLanes);
      sums_high[r][h] = Isa::load(sums + r * kPanel + h * Isa::kLanes + kPanel / 2);
    }
  }
  for (int64_t group = 0; group < n_groups; ++group, weights += Format::kBytes) {
    for (int h = 0; h < kPairs; ++h) {
      typename Isa::Ints low[R], high[R];
      for (int r = 0; r < R; ++r)
        low[r] = high[r] = Isa::broadcast(-Format::template offset<Isa>() * x.sums[r * x.n_groups + group]);
      Format::template dots<Isa, R>(weights, h, x.numbers + group * kGroup, stride, low, high);
      for (int r = 0; r < R; ++r) {
        typename Isa::Floats scale_low, scale_high;
        Format::template scale_pair<Isa>(weights, h, Isa::broadcast(x.scales[r * x.n_groups + group]),
                                         scale_low, scale_high);
        sums_low[r][h] = Isa::fma(Isa::to_floats(low[r]), scale_low, sums_low[r][h]);
        sums_high[r][h] = Isa::fma(Isa::to_floats(high[r]), scale_high, sums_high[r][h]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int h = 0; h < kPairs; ++h) {
      Isa::store(sums + r * kPanel + h * Isa::kLanes, sums_low[r][h]);
      Isa::store(sums + r * kPanel + h * Isa::kLanes + kPanel / 2, sums_high[r][h]);
    }
  }
}

/// y[r, p] = Σₖ x[r, k] · w[p, k] for P consecutive rows of w, which lie as in a matrix. The lanes are
/// inputs.
template <class Isa, int R, int P>
void dot_products(const float* w, int64_t n_inputs, FloatRows x, float* y, int64_t y_stride) {
  constexpr int64_t kLanes = Isa::kLanes;
  typename Isa::Floats sums[R][P];
  for (auto& row : sums)
    for (auto& sum : row) sum = Isa::zero();
  const auto add = [&](const float* inputs, int64_t x_stride, const float* weights, int64_t w_stride) {
    typename Isa::Floats input[R];
    for (int r = 0; r < R; ++r) input[r] = Isa::load(inputs + r * x_stride);
    for (int p = 0; p < P; ++p) {
      const auto weight = Isa::load(weights + p * w_stride);
      for (int r = 0; r < R; ++r) sums[r][p] = Isa::fma(input[r], weight, sums[r][p]);
    }
  };
  int64_t k = 0;
  for (; k + kLanes <= n_inputs; k += kLanes) add(x.data + k, x.stride, w + k, n_inputs);
  if (k < n_inputs) {
    float last_x[R][kLanes] = {}, last_w[P][kLanes] = {};
    const auto bytes = static_cast<size_t>(n_inputs - k) * sizeof(float);
    for (int r = 0; r < R; ++r) std::memcpy(last_x[r], x.data + r * x.stride + k, bytes);
    for (int p = 0; p < P; ++p) std::memcpy(last_w[p], w + p * n_inputs + k, bytes);
    add(last_x[0], kLanes, last_w[0], kLanes);
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) y[r * y_stride + p] = Isa::sum(sums[r][p]);
}

// The functions for each number of rows, as one table.

template <class Isa, class Format, int... R>
constexpr void add_float_kernels(FloatKernel* table, std::integer_sequence<int, R...>) {
  ((table[R] = float_panel<Isa, Format, R + 1>), ...);
}

template <class Isa, class Format, int... R>
constexpr void add_integer_kernels(IntegerKernel* table, std::integer_sequence<int, R...>) {
  ((table[R] = integer_panel<Isa, Format, R + 1>), ...);
}

template <class Isa, int P, int... R>
constexpr void add_dot_kernels(DotKernel* table, std::integer_sequence<int, R...>) {
  ((table[R] = dot_products<Isa, R + 1, P>), ...);
}

template <class Isa>
constexpr ProductKernels kernels_of() {
  constexpr auto float_rows = std::make_integer_sequence<int, Isa::kFloatRows>();
  constexpr auto int_rows = std::make_integer_sequence<int, Isa::kIntRows>();
  ProductKernels kernels{.float_rows = Isa::kFloatRows, .integer_rows = Isa::kIntRows};
  add_float_kernels<Isa, Fp32Panel>(kernels.fp32, float_rows);
  add_float_kernels<Isa, Fp16Panel>(kernels.fp16, float_rows);
  add_float_kernels<Isa, Bf16Panel>(kernels.bf16, float_rows);
  add_integer_kernels<Isa, Int8Panel>(kernels.int8, int_rows);
  add_integer_kernels<Isa, Int4Panel>(kernels.int4, int_rows);
  kernels.fp16_tile = float_tile<Isa, Fp16Panel>;
  kernels.bf16_tile = float_tile<Isa, Bf16Panel>;
  constexpr auto dot_rows = std::make_integer_sequence<int, kDotRows>();
  add_dot_kernels<Isa, kDotOutputs>(kernels.dots, dot_rows);
  add_dot_kernels<Isa, 1>(kernels.last_dots, dot_rows);
  return kernels;
}

}  // namespace
}  // namespace zoo
