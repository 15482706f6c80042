#include "layers/kernels/attention/few_queries.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/kernels/row_kernels.h"

namespace zoo {
namespace {

constexpr int64_t kMostQueries = 7;

/// Queries that see the same keys of one head.
struct Group {
  const float* queries;  // of the first head; the others follow at query_stride
  const float* keys;     // of key 0
  const float* values;
  const float* bias;  // of key 0 and the first query; may be null
  float* outputs;     // of the first query; the others follow one after the other
  int64_t n_queries, query_stride, key_stride, value_stride, bias_stride, key_bias_stride;
  int64_t key_width, value_width;
};

/// Room for the scores of a group, and the keys that it sees.
struct Scratch {
  std::vector<float> scores;     // (queries, S)
  std::vector<int64_t> visible;  // in ascending order
};

ZOO_INLINE float dot_product(const float* x, const float* y, int64_t n) {
  constexpr int64_t n_lanes = 16;
  float lanes[n_lanes] = {};
  int64_t i = 0;
  for (; i + n_lanes <= n; i += n_lanes)
    for (int64_t j = 0; j < n_lanes; ++j) lanes[j] += x[i + j] * y[i + j];
  for (int64_t j = 0; i + j < n; ++j) lanes[j] += x[i + j] * y[i + j];
  for (int64_t half = n_lanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  return lanes[0];
}

/// y := Σ weights[j] · x_j, where x_j is the vector of the j-th visible key.
ZOO_INLINE void weighted_sum(float* y, const float* weights, const float* x, const std::vector<int64_t>& keys,
                             int64_t stride, int64_t width) {
  std::fill_n(y, width, 0.0F);
  const int64_t n = std::ssize(keys);
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const float *x0 = x + keys[j] * stride, *x1 = x + keys[j + 1] * stride, *x2 = x + keys[j + 2] * stride,
                *x3 = x + keys[j + 3] * stride;
    const float w0 = weights[j], w1 = weights[j + 1], w2 = weights[j + 2], w3 = weights[j + 3];
    for (int64_t i = 0; i < width; ++i) y[i] += (w0 * x0[i] + w1 * x1[i]) + (w2 * x2[i] + w3 * x3[i]);
  }
  for (; j < n; ++j) {
    const float* const x0 = x + keys[j] * stride;
    for (int64_t i = 0; i < width; ++i) y[i] += weights[j] * x0[i];
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

ZOO_VECTOR_KERNEL void attend(const Group& group, const std::vector<int64_t>& keys, float* scores,
                              float scale, float softcap) {
  const int64_t n = std::ssize(keys);
  for (int64_t j = 0; j < n; ++j) {
    const float* const key = group.keys + keys[j] * group.key_stride;
    for (int64_t g = 0; g < group.n_queries; ++g)
      scores[g * n + j] = scale * dot_product(group.queries + g * group.query_stride, key, group.key_width);
  }
  for (int64_t g = 0; g < group.n_queries; ++g) {
    float* const row = scores + g * n;
    if (group.bias) {
      const float* const bias = group.bias + g * group.bias_stride;
      for (int64_t j = 0; j < n; ++j) row[j] += bias[keys[j] * group.key_bias_stride];
    }
    if (softcap > 0)
      for (int64_t j = 0; j < n; ++j) row[j] = softcap * std::tanh(row[j] / softcap);
    const float sum = exponentials(row, n);
    float* const output = group.outputs + g * group.value_width;
    weighted_sum(output, row, group.values, keys, group.value_stride, group.value_width);
    const float factor = sum == 0 ? 0.0F : 1 / sum;
    for (int64_t i = 0; i < group.value_width; ++i) output[i] *= factor;
  }
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

}  // namespace

bool has_few_queries_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  return is_plain(q) && is_plain(k) && is_plain(v) && q.size(0) == k.size(0) && k.size(1) > 0 &&
         q.size(1) % k.size(1) == 0 && q.size(3) == k.size(3) &&
         k.sizes().slice(0, 3) == v.sizes().slice(0, 3) && q.size(2) <= kMostQueries &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

torch::Tensor few_queries_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                    const FewQueriesOptions& options) {
  TORCH_CHECK(has_few_queries_attention(q, k, v), "few_queries_attention does not support queries ",
              q.sizes(), " over keys ", k.sizes(), ": check has_few_queries_attention() first");
  const int64_t n_rows = q.size(0), n_heads = q.size(1), n_queries = q.size(2), n_keys = k.size(2);
  const auto visible = expanded(options.visible, {n_rows, n_heads, n_queries, n_keys});
  const auto bias = expanded(options.bias, {n_rows, n_heads, n_queries, n_keys});
  auto output = torch::empty({n_rows, n_queries, n_heads, v.size(3)}, q.options());

  // Heads that share keys form a group, unless each sees other keys, or there are fewer groups than threads.
  const int64_t sharing = n_heads / k.size(1);
  const bool alike = !visible.defined() || visible.stride(1) == 0;
  const bool grouped = alike && n_rows * k.size(1) >= at::get_num_threads();
  const int64_t group_size = grouped ? sharing : 1, n_groups = n_heads / group_size;
  const auto softcap = static_cast<float>(options.softcap.value_or(0));

  const auto work = [&](int64_t task, Scratch& scratch) {
    const int64_t b = task / n_groups, head = task % n_groups * group_size, key_head = head / sharing;
    for (int64_t t = 0; t < n_queries; ++t) {
      scratch.visible.resize(static_cast<size_t>(n_keys));
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
          .keys = k.const_data_ptr<float>() + b * k.stride(0) + key_head * k.stride(1),
          .values = v.const_data_ptr<float>() + b * v.stride(0) + key_head * v.stride(1),
          .bias = bias.defined() ? bias.const_data_ptr<float>() + b * bias.stride(0) + head * bias.stride(1) +
                                       t * bias.stride(2)
                                 : nullptr,
          .outputs = output.mutable_data_ptr<float>() + b * output.stride(0) + t * output.stride(1) +
                     head * output.stride(2),
          .n_queries = group_size,
          .query_stride = q.stride(1),
          .key_stride = k.stride(2),
          .value_stride = v.stride(2),
          .bias_stride = bias.defined() ? bias.stride(1) : 0,
          .key_bias_stride = bias.defined() ? bias.stride(3) : 0,
          .key_width = q.size(3),
          .value_width = v.size(3)};
      attend(group, scratch.visible, scratch.scores.data(), static_cast<float>(options.scale), softcap);
    }
  };
  const int64_t numbers_of_a_task = std::max<int64_t>(1, n_keys * group_size * n_queries * q.size(3));
  at::parallel_for(0, n_rows * n_groups, grain_rows(numbers_of_a_task), [&](int64_t first, int64_t last) {
    Scratch scratch;
    for (int64_t task = first; task < last; ++task) work(task, scratch);
  });
  return output.transpose(1, 2);
}

}  // namespace zoo
