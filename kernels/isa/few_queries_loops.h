#pragma once
// Attention of few queries to many keys.

#include "kernels/isa/kernels.h"
#include "kernels/isa/row_loops.h"

namespace zoo {
namespace {

inline float as_float(float x) { return x; }
inline float as_float(uint16_t upper_half) {
  return std::bit_cast<float>(static_cast<uint32_t>(upper_half) << 16);
}
inline float as_float(int8_t x) { return static_cast<float>(x); }

// Keys are not negative, and a division of unsigned numbers by a power of two is a shift.
inline uint64_t block_of(int64_t key) { return static_cast<uint64_t>(key) / kBlockColumns; }
inline int64_t place_in_block(int64_t key) {
  return static_cast<int64_t>(static_cast<uint64_t>(key) % kBlockColumns);
}

template <class Number>
inline float dot_product(const float* x, const Number* y, int64_t n) {
  constexpr int64_t n_lanes = 16;
  float lanes[n_lanes] = {};
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes)
    for (int64_t j = 0; j < n_lanes; ++j) lanes[j] += x[i + j] * as_float(y[i + j]);
  for (int64_t j = 0; i + j < n; ++j) lanes[j] += x[i + j] * as_float(y[i + j]);
  for (int64_t half = n_lanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  return lanes[0];
}

/// y := Σ weights[j] · x_j, where x_j is the vector of the j-th visible key.
template <class Number>
inline void weighted_sum(float* y, const float* weights, const HeadBlock<Number>* blocks, const int64_t* keys,
                         int64_t n, int64_t stride, int64_t width) {
  std::fill_n(y, width, 0.0F);
  const auto vector = [&](int64_t j) {
    return blocks[block_of(keys[j])].values + place_in_block(keys[j]) * stride;
  };
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const Number *x0 = vector(j), *x1 = vector(j + 1), *x2 = vector(j + 2), *x3 = vector(j + 3);
    const float w0 = weights[j], w1 = weights[j + 1], w2 = weights[j + 2], w3 = weights[j + 3];
    for (int64_t i = 0; i < width; ++i) {
      y[i] += (w0 * as_float(x0[i]) + w1 * as_float(x1[i])) + (w2 * as_float(x2[i]) + w3 * as_float(x3[i]));
    }
  }
  for (; j < n; ++j) {
    const Number* const x0 = vector(j);
    for (int64_t i = 0; i < width; ++i) y[i] += weights[j] * as_float(x0[i]);
  }
}

/// Turns scores into weights, up to a factor. Returns the sum of the weights: 0 if nothing is visible.
inline float weights_of(float* scores, int64_t n) {
  constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
  const float largest = row_maximum(scores, n);
  if (largest == minus_infinity) {
    // Nothing is visible, or every score is NaN, which stays.
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += scores[j] = scores[j] == minus_infinity ? 0.0F : scores[j];
    return sum;
  }
  for (int64_t j = 0; j < n; ++j) {
    const float weight = exp_of_negative(scores[j] - largest);
    scores[j] = scores[j] == minus_infinity ? 0.0F : weight;
  }
  return static_cast<float>(row_sum(n, [&](int64_t j) { return scores[j]; }));
}

template <class Number>
void attend(const QueryGroup& group, const HeadBlock<Number>* blocks, const int64_t* keys, int64_t n,
            float* scores) {
  constexpr bool has_scales = sizeof(Number) == 1;
  for (int64_t j = 0; j < n; ++j) {
    const auto& block = blocks[block_of(keys[j])];
    const int64_t place = place_in_block(keys[j]);
    const Number* const key = block.keys + place * group.key_stride;
    const float scale = has_scales ? group.scale * block.key_scales[place] : group.scale;
    for (int64_t g = 0; g < group.n_queries; ++g)
      scores[g * n + j] = scale * dot_product(group.queries + g * group.query_stride, key, group.key_width);
  }
  for (int64_t g = 0; g < group.n_queries; ++g) {
    float* const row = scores + g * n;
    if (group.bias) {
      const float* const bias = group.bias + g * group.bias_stride;
      for (int64_t j = 0; j < n; ++j) row[j] += bias[keys[j] * group.key_bias_stride];
    }
    if (group.softcap > 0)
      for (int64_t j = 0; j < n; ++j) row[j] = group.softcap * std::tanh(row[j] / group.softcap);
    const float sum = weights_of(row, n);
    if (has_scales) {
      for (int64_t j = 0; j < n; ++j)
        row[j] *= blocks[block_of(keys[j])].value_scales[place_in_block(keys[j])];
    }
    float* const output = group.outputs + g * group.value_width;
    weighted_sum(output, row, blocks, keys, n, group.value_stride, group.value_width);
    const float factor = sum == 0 ? 0.0F : 1 / sum;
    for (int64_t i = 0; i < group.value_width; ++i) output[i] *= factor;
  }
}

}  // namespace
}  // namespace zoo
