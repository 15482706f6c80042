#pragma once
// The products of few rows with a matrix in panels.
//
// The sum of an output is the same sequence of operations, whatever the number of rows and outputs that are
// computed together. The result of a row therefore depends on no other row.

#include "kernels/isa/kernels.h"
#include "kernels/isa/panels.h"

namespace zoo {
namespace {

template <class Isa>
struct FloatPair {
  typename Isa::Floats low, high;
};

// Panels of floats. load_pair() gives the weights of one input and of outputs h·kLanes … , and those of the
// outputs 16 further on.

struct Fp32Panel {
  static constexpr int64_t kBytes = 4 * kPanel;
  template <class Isa>
  static inline FloatPair<Isa> load_pair(const uint8_t* w, int h) {
    const auto* const floats = reinterpret_cast<const float*>(w) + h * Isa::kLanes;
    return {Isa::load(floats), Isa::load(floats + kPanel / 2)};
  }
};

struct Fp16Panel {
  static constexpr int64_t kBytes = 2 * kPanel;
  template <class Isa>
  static inline FloatPair<Isa> load_pair(const uint8_t* w, int h) {
    const auto* const halves = w + 2 * h * Isa::kLanes;
    return {Isa::load_halves(halves), Isa::load_halves(halves + kPanel)};
  }
};

struct Bf16Panel {
  static constexpr int64_t kBytes = 2 * kPanel;
  template <class Isa>
  static inline FloatPair<Isa> load_pair(const uint8_t* w, int h) {
    const auto words = Isa::load_bytes(w + 4 * h * Isa::kLanes);
    return {Isa::low_bf16(words), Isa::high_bf16(words)};
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
        const auto pair = Format::template load_pair<Isa>(w, h + a);
        for (int r = 0; r < R; ++r) {
          const float input = x.data[r * x.stride + k];
          low[r][a] += input * pair.low;
          high[r][a] += input * pair.high;
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
      const auto pair = Format::template load_pair<Isa>(weights, h);
      Isa::store(tile + h * Isa::kLanes, pair.low);
      Isa::store(tile + h * Isa::kLanes + kPanel / 2, pair.high);
    }
  }
}

// Panels of integers. dots() takes one group of inputs of R rows. It adds their products with kLanes outputs,
// from output h·kLanes on, to `low`, and those with the outputs 16 further on to `high`. scale() gives the
// factors of the group for kLanes outputs: the scale of the inputs, times those of the weights if the format
// has them.

/// The same four bytes in each lane.
template <class Isa>
inline typename Isa::Ints broadcast_quad(const int8_t* p) {
  int32_t quad;
  std::memcpy(&quad, p, sizeof quad);
  return quad + typename Isa::Ints{};
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
  static inline float scale(const uint8_t*, int64_t, float x_scale) {
    return x_scale;
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
  static inline typename Isa::Floats scale(const uint8_t* w, int64_t output, float x_scale) {
    return x_scale * Isa::load_halves(w + 2 * output);
  }
};

/// sums (R, 32) += x (R, groups · 32) · panel (groups · 32, 32)
template <class Isa, class Format, int R>
void integer_panel(const uint8_t* weights, const IntegerRows& x, int64_t n_groups, float* sums) {
  using Floats = typename Isa::Floats;
  using Ints = typename Isa::Ints;
  constexpr int kPairs = kPanel / 2 / Isa::kLanes;
  const int64_t stride = x.n_groups * kGroup;
  Floats sums_low[R][kPairs], sums_high[R][kPairs];
  for (int r = 0; r < R; ++r) {
    for (int h = 0; h < kPairs; ++h) {
      sums_low[r][h] = Isa::load(sums + r * kPanel + h * Isa::kLanes);
      sums_high[r][h] = Isa::load(sums + r * kPanel + h * Isa::kLanes + kPanel / 2);
    }
  }
  for (int64_t group = 0; group < n_groups; ++group, weights += Format::kBytes) {
    for (int h = 0; h < kPairs; ++h) {
      const int64_t output = h * Isa::kLanes;
      Ints low[R], high[R];
      for (int r = 0; r < R; ++r)
        low[r] = high[r] = -Format::template offset<Isa>() * x.sums[r * x.n_groups + group] + Ints{};
      Format::template dots<Isa, R>(weights, h, x.numbers + group * kGroup, stride, low, high);
      for (int r = 0; r < R; ++r) {
        const float x_scale = x.scales[r * x.n_groups + group];
        sums_low[r][h] +=
            __builtin_convertvector(low[r], Floats) * Format::template scale<Isa>(weights, output, x_scale);
        sums_high[r][h] += __builtin_convertvector(high[r], Floats) *
                           Format::template scale<Isa>(weights, output + kPanel / 2, x_scale);
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
  typename Isa::Floats sums[R][P] = {};
  const auto add = [&](const float* inputs, int64_t x_stride, const float* weights, int64_t w_stride) {
    typename Isa::Floats input[R];
    for (int r = 0; r < R; ++r) input[r] = Isa::load(inputs + r * x_stride);
    for (int p = 0; p < P; ++p) {
      const auto weight = Isa::load(weights + p * w_stride);
      for (int r = 0; r < R; ++r) sums[r][p] += input[r] * weight;
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

/// Calls set<R>() for R from 1 to n_rows.
template <int n_rows, class Set>
constexpr void for_each_number(const Set& set) {
  if constexpr (n_rows > 1) for_each_number<n_rows - 1>(set);
  set.template operator()<n_rows>();
}

template <class Isa>
constexpr ProductKernels product_kernels() {
  ProductKernels kernels{.float_rows = Isa::kFloatRows,
                         .integer_rows = Isa::kIntRows,
                         .bf16_tile = float_tile<Isa, Bf16Panel>,
                         .fp16_tile = float_tile<Isa, Fp16Panel>};
  for_each_number<Isa::kFloatRows>([&]<int R>() {
    kernels.fp32[R - 1] = float_panel<Isa, Fp32Panel, R>;
    kernels.bf16[R - 1] = float_panel<Isa, Bf16Panel, R>;
    kernels.fp16[R - 1] = float_panel<Isa, Fp16Panel, R>;
  });
  for_each_number<Isa::kIntRows>([&]<int R>() {
    kernels.int8[R - 1] = integer_panel<Isa, Int8Panel, R>;
    kernels.int4[R - 1] = integer_panel<Isa, Int4Panel, R>;
  });
  for_each_number<kDotRows>([&]<int R>() {
    kernels.dots[R - 1] = dot_products<Isa, R, kDotOutputs>;
    kernels.last_dots[R - 1] = dot_products<Isa, R, 1>;
  });
  return kernels;
}

}  // namespace
}  // namespace zoo
