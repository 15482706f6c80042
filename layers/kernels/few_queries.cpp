#include "layers/kernels/few_queries.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/kernels/row_kernels.h"

namespace zoo {
namespace {

constexpr int64_t kMostQueries = 7;

/// One head of a block of keys and values.
template <class Number>
struct HeadBlock {
  const Number *keys, *values;
  const float *key_scales, *value_scales;  // of int8
};

/// Queries that see the same keys of one head.
struct Group {
  const float* queries;  // of the first head; the others follow at query_stride
  const float* bias;     // of key 0 and the first query; may be null
  float* outputs;        // of the first query; the others follow one after the other
  int64_t n_queries, query_stride, key_stride, value_stride, bias_stride, key_bias_stride;
  int64_t key_width, value_width;
  float scale, softcap;
};

/// Room for the scores of a group, and the keys that it sees.
struct Scratch {
  std::vector<float> scores;     // (queries, S)
  std::vector<int64_t> visible;  // in ascending order
};

ZOO_INLINE float as_float(float x) { return x; }
ZOO_INLINE float as_float(uint16_t upper_half) {
  return std::bit_cast<float>(static_cast<uint32_t>(upper_half) << 16);
}
ZOO_INLINE float as_float(int8_t x) { return static_cast<float>(x); }

// Keys are not negative, and a division of unsigned numbers by a power of two is a shift.
ZOO_INLINE uint64_t block_of(int64_t key) { return static_cast<uint64_t>(key) / kBlockColumns; }
ZOO_INLINE int64_t place_in_block(int64_t key) {
  return static_cast<int64_t>(static_cast<uint64_t>(key) % kBlockColumns);
}

template <class Number>
ZOO_INLINE float dot_product(const float* x, const Number* y, int64_t n) {
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
ZOO_INLINE void weighted_sum(float* y, const float* weights, const HeadBlock<Number>* blocks,
                             const std::vector<int64_t>& keys, int64_t stride, int64_t width) {
  std::fill_n(y, width, 0.0F);
  const int64_t n = std::ssize(keys);
  const auto vector = [&](int64_t j) ZOO_INLINED {
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
ZOO_INLINE float exponentials(float* scores, int64_t n) {
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
  return static_cast<float>(row_sum(n, [&](int64_t j) ZOO_INLINED { return scores[j]; }));
}

template <class Number>
ZOO_INLINE void attend_to(const Group& group, const HeadBlock<Number>* blocks,
                          const std::vector<int64_t>& keys, float* scores) {
  const int64_t n = std::ssize(keys);
  const bool has_scales = std::is_same_v<Number, int8_t>;
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
    const float sum = exponentials(row, n);
    if (has_scales) {
      for (int64_t j = 0; j < n; ++j)
        row[j] *= blocks[block_of(keys[j])].value_scales[place_in_block(keys[j])];
    }
    float* const output = group.outputs + g * group.value_width;
    weighted_sum(output, row, blocks, keys, group.value_stride, group.value_width);
    const float factor = sum == 0 ? 0.0F : 1 / sum;
    for (int64_t i = 0; i < group.value_width; ++i) output[i] *= factor;
  }
}

ZOO_VECTOR_KERNEL void attend(const Group& group, const HeadBlock<float>* blocks,
                              const std::vector<int64_t>& keys, float* scores) {
  attend_to(group, blocks, keys, scores);
}
ZOO_VECTOR_KERNEL void attend(const Group& group, const HeadBlock<uint16_t>* blocks,
                              const std::vector<int64_t>& keys, float* scores) {
  attend_to(group, blocks, keys, scores);
}
ZOO_VECTOR_KERNEL void attend(const Group& group, const HeadBlock<int8_t>* blocks,
                              const std::vector<int64_t>& keys, float* scores) {
  attend_to(group, blocks, keys, scores);
}

/// The numbers of the keys that are seen.
void keep_visible(std::vector<int64_t>& keys, const bool* seen, int64_t stride) {
  size_t n = 0;
  for (int64_t s = 0; s < std::ssize(keys); ++s) {
    keys[n] = s;
    n += seen[s * stride] ? 1 : 0;
  }
  keys.resize(n);
}

/// A tensor (B or 1, H or 1, T, S) with the strides of (B, H, T, S); undefined: none.
torch::Tensor expanded(const torch::Tensor& x, at::IntArrayRef sizes) {
  return x.defined() ? x.expand(sizes) : x;
}

bool is_plain(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat && x.dim() == 4 && x.stride(3) == 1 &&
         !(torch::GradMode::is_enabled() && x.requires_grad());
}

/// One head of the blocks of row b.
template <class Number>
void take_head(std::vector<HeadBlock<Number>>& to, const ColumnBlocks& keys, int64_t b, int64_t head) {
  const auto n = static_cast<size_t>((keys.lengths[b] + kBlockColumns - 1) / kBlockColumns);
  const auto* const blocks = keys.blocks.data() + keys.first_blocks[b];
  to.resize(n);
  const auto numbers = [&](const StoredHeads& x) {
    return reinterpret_cast<const Number*>(x.numbers) + head * x.head_stride;
  };
  const auto scales = [&](const StoredHeads& x) {
    return x.scales ? x.scales + head * x.scale_head_stride : nullptr;
  };
  for (size_t i = 0; i < n; ++i) {
    const auto& [k, v] = blocks[i];
    to[i] = {.keys = numbers(k), .values = numbers(v), .key_scales = scales(k), .value_scales = scales(v)};
  }
}

template <class Number>
torch::Tensor attention_over(const torch::Tensor& q, const ColumnBlocks& keys,
                             const FewQueriesOptions& options) {
  const int64_t n_rows = q.size(0), n_heads = q.size(1), n_queries = q.size(2), n_keys = keys.n_columns;
  const auto visible = expanded(options.visible, {n_rows, n_heads, n_queries, n_keys});
  const auto bias = expanded(options.bias, {n_rows, n_heads, n_queries, n_keys});
  auto output = torch::empty({n_rows, n_queries, n_heads, keys.value_width}, q.options());

  // Heads that share keys form a group, unless each sees other keys, or there are fewer groups than threads.
  const int64_t sharing = n_heads / keys.n_heads;
  const bool alike = !visible.defined() || visible.stride(1) == 0;
  const bool grouped = alike && n_rows * keys.n_heads >= at::get_num_threads();
  const int64_t group_size = grouped ? sharing : 1, n_groups = n_heads / group_size;

  const auto work = [&](int64_t task, std::vector<HeadBlock<Number>>& blocks, Scratch& scratch) {
    const int64_t b = task / n_groups, head = task % n_groups * group_size;
    take_head(blocks, keys, b, head / sharing);
    for (int64_t t = 0; t < n_queries; ++t) {
      scratch.visible.resize(static_cast<size_t>(std::min(n_keys, keys.lengths[b])));
      if (visible.defined()) {
        const bool* const seen = visible.const_data_ptr<bool>() + b * visible.stride(0) +
                                 head * visible.stride(1) + t * visible.stride(2);
        keep_visible(scratch.visible, seen, visible.stride(3));
      } else {
        std::iota(scratch.visible.begin(), scratch.visible.end(), 0);
      }
      scratch.scores.resize(static_cast<size_t>(group_size) * scratch.visible.size());
      const Group group{
          .queries = q.const_data_ptr<float>() + b * q.stride(0) + head * q.stride(1) + t * q.stride(2),
          .bias = bias.defined() ? bias.const_data_ptr<float>() + b * bias.stride(0) + head * bias.stride(1) +
                                       t * bias.stride(2)
                                 : nullptr,
          .outputs = output.mutable_data_ptr<float>() + b * output.stride(0) + t * output.stride(1) +
                     head * output.stride(2),
          .n_queries = group_size,
          .query_stride = q.stride(1),
          .key_stride = keys.key_stride,
          .value_stride = keys.value_stride,
          .bias_stride = bias.defined() ? bias.stride(1) : 0,
          .key_bias_stride = bias.defined() ? bias.stride(3) : 0,
          .key_width = keys.key_width,
          .value_width = keys.value_width,
          .scale = static_cast<float>(options.scale),
          .softcap = static_cast<float>(options.softcap.value_or(0))};
      attend(group, blocks.data(), scratch.visible, scratch.scores.data());
    }
  };
  const int64_t numbers_of_a_task = std::max<int64_t>(1, n_keys * group_size * n_queries * q.size(3));
  at::parallel_for(0, n_rows * n_groups, grain_rows(numbers_of_a_task), [&](int64_t first, int64_t last) {
    std::vector<HeadBlock<Number>> blocks;
    Scratch scratch;
    for (int64_t task = first; task < last; ++task) work(task, blocks, scratch);
  });
  return output.transpose(1, 2);
}

/// The blocks of plain tensors (B, K, S, D).
ColumnBlocks blocks_of(const torch::Tensor& k, const torch::Tensor& v) {
  ColumnBlocks result{.n_heads = k.size(1),
                      .key_width = k.size(3),
                      .value_width = v.size(3),
                      .n_columns = k.size(2),
                      .key_stride = k.stride(2),
                      .value_stride = v.stride(2)};
  for (int64_t b = 0; b < k.size(0); ++b) result.add_row(heads_of_row(k, b), heads_of_row(v, b), k.size(2));
  return result;
}

}  // namespace

bool are_few_queries(const torch::Tensor& q) {
  return is_plain(q) && q.size(2) <= kMostQueries && !at::autocast::is_autocast_enabled(at::kCPU);
}

bool has_few_queries_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  return are_few_queries(q) && is_plain(k) && is_plain(v) && q.size(0) == k.size(0) && k.size(1) > 0 &&
         q.size(1) % k.size(1) == 0 && q.size(3) == k.size(3) &&
         k.sizes().slice(0, 3) == v.sizes().slice(0, 3);
}

torch::Tensor few_queries_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                    const FewQueriesOptions& options) {
  TORCH_CHECK(has_few_queries_attention(q, k, v), "few_queries_attention does not support queries ",
              q.sizes(), " over keys ", k.sizes(), ": check has_few_queries_attention() first");
  return attention_over<float>(q, blocks_of(k, v), options);
}

torch::Tensor few_queries_attention(const torch::Tensor& q, const ColumnBlocks& keys,
                                    const FewQueriesOptions& options) {
  TORCH_CHECK(are_few_queries(q) && q.size(0) == std::ssize(keys.lengths) && keys.n_heads > 0 &&
                  q.size(1) % keys.n_heads == 0 && q.size(3) == keys.key_width,
              "few_queries_attention does not support queries ", q.sizes(), " over ", keys.lengths.size(),
              " rows of ", keys.n_heads, " x ", keys.key_width, " numbers");
  switch (keys.format) {
    case CacheFormat::bf16:
      return attention_over<uint16_t>(q, keys, options);
    case CacheFormat::int8:
      return attention_over<int8_t>(q, keys, options);
    case CacheFormat::fp32:
      break;
  }
  return attention_over<float>(q, keys, options);
}

}  // namespace zoo
