#include "layers/kernels/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "layers/kernels/first_derivative.h"
#include "layers/kernels/gemm.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

// Queries in a block. With larger blocks fewer keys can be skipped; with smaller blocks the gemms are
// smaller.
constexpr int64_t kQueryBlock = 24;
// With more keys, the rows of weights and the keys leave the cache, and LibTorch's kernel, which tiles both,
// is as fast.
constexpr int64_t kMaxKeys = 2048;
// With fewer queries, transposing the keys costs more than computing with them.
constexpr int64_t kMinQueries = 8;

int64_t padded(int64_t n) { return (n + kVectorWidth - 1) / kVectorWidth * kVectorWidth; }

/// One head: contiguous rows at any distance from each other.
struct HeadView {
  float* data;
  int64_t row_stride, n_rows, width;

  float* operator[](int64_t i) const { return data + i * row_stride; }
  MatrixB matrix_b() const { return {.data = data, .row_stride = row_stride}; }
};

HeadView head_view(const torch::Tensor& x, int64_t b, int64_t h) {  // x: (B, H, T, D)
  return {.data = static_cast<float*>(x.data_ptr()) + b * x.stride(0) + h * x.stride(1),
          .row_stride = x.stride(2),
          .n_rows = x.size(2),
          .width = x.size(3)};
}

/// The transpose of a head, (D, padded T); the padding is zero.
class Transposed {
 public:
  Transposed(int64_t n_rows, int64_t width)
      : row_stride_(padded(n_rows)),
        numbers_(torch::zeros({width, row_stride_})),
        data_(numbers_.mutable_data_ptr<float>()) {}

  ZOO_AVX512 void assign(const HeadView& x) {
    for (int64_t first = 0; first < x.n_rows; first += kVectorWidth) {
      const int64_t end = std::min(first + kVectorWidth, x.n_rows);
      for (int64_t j = 0; j < x.width; ++j)
        for (int64_t i = first; i < end; ++i) data_[j * row_stride_ + i] = x[i][j];
    }
  }
  MatrixB matrix_b() const { return {.data = data_, .row_stride = row_stride_}; }

 private:
  int64_t row_stride_;
  torch::Tensor numbers_;  // a tensor, because its allocator keeps the memory from one call to the next
  float* data_;
};

/// Scores, weights or their gradients of a block of queries.
class ScoreBlock {
 public:
  explicit ScoreBlock(int64_t n_keys)
      : row_stride_(padded(n_keys)),
        numbers_(torch::empty({kQueryBlock, row_stride_})),
        data_(numbers_.mutable_data_ptr<float>()) {}

  float* operator[](int64_t i) { return data_ + i * row_stride_; }
  MatrixC matrix_c() { return {.data = data_, .row_stride = row_stride_}; }
  MatrixA matrix_a() const { return {.data = data_, .row_stride = row_stride_, .column_stride = 1}; }
  MatrixA transposed_a() const { return {.data = data_, .row_stride = 1, .column_stride = row_stride_}; }

 private:
  int64_t row_stride_;
  torch::Tensor numbers_;
  float* data_;
};

using IntegerVector = uint32_t __attribute__((vector_size(kVectorWidth * sizeof(uint32_t))));

ZOO_AVX512 ZOO_INLINE FloatVector& vector_at(float* x) { return *reinterpret_cast<FloatVector*>(x); }
ZOO_AVX512 ZOO_INLINE FloatVector vector_at(const float* x) {
  return *reinterpret_cast<const FloatVector*>(x);
}

template <int N>
ZOO_AVX512 ZOO_INLINE FloatVector rotate_lanes(FloatVector x) {
  return __builtin_shufflevector(x, x, N, N + 1, N + 2, N + 3, N + 4, N + 5, N + 6, N + 7, N + 8, N + 9,
                                 N + 10, N + 11, N + 12, N + 13, N + 14, N + 15);
}

ZOO_AVX512 ZOO_INLINE FloatVector maximum(FloatVector x, FloatVector y) { return x > y ? x : y; }

/// e^x for x ≤ 0 to about 1e-7, as in layers/kernels/row_kernels.h, but sixteen at a time, and 0 where e^x is
/// below 1e-37.
ZOO_AVX512 ZOO_INLINE FloatVector vector_exp_of_negative(FloatVector x) {
  constexpr float least = -85.0F, log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  constexpr float to_integer = 12582912.0F;
  const FloatVector shifted = x * log2_e + to_integer;
  const FloatVector n = shifted - to_integer;
  const FloatVector r = (x - n * ln2_high) - n * ln2_low;
  FloatVector p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const FloatVector result = (FloatVector)((IntegerVector)p + ((IntegerVector)shifted << 23));
  return x < least ? FloatVector{} : result;
}

/// Masks the scores from `n` to `n_padded`.
void mask_out(float* scores, int64_t n, int64_t n_padded) {
  std::fill(scores + n, scores + n_padded, -std::numeric_limits<float>::infinity());
}

// In the functions below `n` is a multiple of kVectorWidth.

ZOO_AVX512 ZOO_INLINE float row_max(const float* x, int64_t n) {
  FloatVector lanes = vector_at(x);
  for (int64_t i = kVectorWidth; i < n; i += kVectorWidth) lanes = maximum(lanes, vector_at(x + i));
  lanes = maximum(lanes, rotate_lanes<8>(lanes));
  lanes = maximum(lanes, rotate_lanes<4>(lanes));
  lanes = maximum(lanes, rotate_lanes<2>(lanes));
  return maximum(lanes, rotate_lanes<1>(lanes))[0];
}

ZOO_AVX512 ZOO_INLINE float sum(FloatVector lanes) {
  lanes += rotate_lanes<8>(lanes);
  lanes += rotate_lanes<4>(lanes);
  lanes += rotate_lanes<2>(lanes);
  lanes += rotate_lanes<1>(lanes);
  return lanes[0];
}

ZOO_AVX512 ZOO_INLINE float dot(const float* x, const float* y, int64_t n) {
  FloatVector lanes = {};
  for (int64_t i = 0; i < n; i += kVectorWidth) lanes += vector_at(x + i) * vector_at(y + i);
  return sum(lanes);
}

/// x := e^(scale·x - shift), at most 1 apart from rounding; returns the sum.
ZOO_AVX512 ZOO_INLINE float exponentials(float* x, int64_t n, float scale, float shift) {
  FloatVector lanes = {};
  for (int64_t i = 0; i < n; i += kVectorWidth) {
    const FloatVector result = vector_exp_of_negative(vector_at(x + i) * scale - shift);
    vector_at(x + i) = result;
    lanes += result;
  }
  return sum(lanes);
}

ZOO_AVX512 ZOO_INLINE void multiply(float* x, int64_t n, float factor) {
  for (int64_t i = 0; i < n; i += kVectorWidth) vector_at(x + i) *= factor;
}

/// Turns the gradient of the weights into the gradient of the scores: weight·(gradient - delta)·scale.
ZOO_AVX512 ZOO_INLINE void softmax_backward(float* gradient, const float* weights, int64_t n, float delta,
                                            float scale) {
  for (int64_t i = 0; i < n; i += kVectorWidth)
    vector_at(gradient + i) = vector_at(weights + i) * (vector_at(gradient + i) - delta) * scale;
}

struct Kernel {
  Visible visible;
  float scale;

  int64_t n_visible(int64_t query, int64_t n_keys) const {
    return visible == Visible::all_keys ? n_keys : query + 1;
  }

  /// Writes `out` and the logsumexp (T) of the scaled scores.
  ZOO_AVX512 void forward(const HeadView& q, const HeadView& v, const Transposed& keys, const HeadView& out,
                          float* logsumexp, ScoreBlock& rows) const {
    for (int64_t first = 0; first < q.n_rows; first += kQueryBlock) {
      const int64_t m = std::min(kQueryBlock, q.n_rows - first), n = n_visible(first + m - 1, v.n_rows);
      gemm<Beta::zero>({.data = q[first], .row_stride = q.row_stride, .column_stride = 1}, keys.matrix_b(),
                       q.width, rows.matrix_c(), m, padded(n));
      float sums[kQueryBlock];
      for (int64_t i = 0; i < m; ++i) {
        mask_out(rows[i], n_visible(first + i, v.n_rows), padded(n));
        const float shift = scale * row_max(rows[i], padded(n));
        sums[i] = exponentials(rows[i], padded(n), scale, shift);
        logsumexp[first + i] = shift + std::log(sums[i]);
      }
      gemm<Beta::zero>(rows.matrix_a(), v.matrix_b(), n, {.data = out[first], .row_stride = out.row_stride},
                       m, v.width);
      for (int64_t i = 0; i < m; ++i) multiply(out[first + i], v.width, 1 / sums[i]);
    }
  }

  /// backward() writes q and adds to k and v.
  struct Gradients {
    HeadView q, k, v;
  };

  ZOO_AVX512 void backward(const HeadView& q, const HeadView& k, const Transposed& keys,
                           const Transposed& values, const HeadView& out, const HeadView& out_gradient,
                           const float* logsumexp, const Gradients& gradients, ScoreBlock& weights,
                           ScoreBlock& scores) const {
    for (int64_t first = 0; first < q.n_rows; first += kQueryBlock) {
      const int64_t m = std::min(kQueryBlock, q.n_rows - first), n = n_visible(first + m - 1, k.n_rows);
      const MatrixA queries{.data = q[first], .row_stride = q.row_stride, .column_stride = 1};
      const MatrixA upstream{
          .data = out_gradient[first], .row_stride = out_gradient.row_stride, .column_stride = 1};
      gemm<Beta::zero>(queries, keys.matrix_b(), q.width, weights.matrix_c(), m, padded(n));
      gemm<Beta::zero>(upstream, values.matrix_b(), out.width, scores.matrix_c(), m, padded(n));
      for (int64_t i = 0; i < m; ++i) {
        mask_out(weights[i], n_visible(first + i, k.n_rows), padded(n));
        exponentials(weights[i], padded(n), scale, logsumexp[first + i]);
        const float delta = dot(out[first + i], out_gradient[first + i], out.width);
        softmax_backward(scores[i], weights[i], padded(n), delta, scale);
      }
      gemm<Beta::zero>(scores.matrix_a(), k.matrix_b(), n,
                       {.data = gradients.q[first], .row_stride = gradients.q.row_stride}, m, q.width);
      gemm<Beta::one>(scores.transposed_a(), {.data = q[first], .row_stride = q.row_stride}, m,
                      {.data = gradients.k.data, .row_stride = gradients.k.row_stride}, n, q.width);
      gemm<Beta::one>(weights.transposed_a(),
                      {.data = out_gradient[first], .row_stride = out_gradient.row_stride}, m,
                      {.data = gradients.v.data, .row_stride = gradients.v.row_stride}, n, out.width);
    }
  }
};

/// An empty (B, H, T, D), laid out in memory as (B, T, H, D).
torch::Tensor empty_token_major(const torch::Tensor& like, int64_t n_heads, int64_t n_rows, int64_t width) {
  return torch::empty_strided({like.size(0), n_heads, n_rows, width},
                              {n_rows * n_heads * width, width, n_heads * width, 1}, like.options());
}

struct CpuAttention : torch::autograd::Function<CpuAttention> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, Visible visible, double scale) {
    const Kernel attention{visible, static_cast<float>(scale)};
    const int64_t n_heads = q.size(1), n_kv_heads = k.size(1), group = n_heads / n_kv_heads,
                  n_keys = k.size(2);
    const auto out = empty_token_major(q, n_heads, q.size(2), v.size(3));
    const auto logsumexp = torch::empty({q.size(0), n_heads, q.size(2)}, q.options());
    at::parallel_for(0, q.size(0) * n_kv_heads, 1, [&](int64_t begin, int64_t end) {
      Transposed keys(n_keys, k.size(3));
      ScoreBlock rows(n_keys);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / n_kv_heads, kv_head = i % n_kv_heads;
        keys.assign(head_view(k, b, kv_head));
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          attention.forward(head_view(q, b, h), head_view(v, b, kv_head), keys, head_view(out, b, h),
                            logsumexp.mutable_data_ptr<float>() + (b * n_heads + h) * q.size(2), rows);
        }
      }
    });
    context->save_for_backward({q, k, v, out, logsumexp});
    context->saved_data["visible"] = static_cast<int64_t>(visible);
    context->saved_data["scale"] = scale;
    return out;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("attention");
    const auto saved = context->get_saved_variables();
    const auto &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3], &logsumexp = saved[4];
    const Kernel attention{static_cast<Visible>(context->saved_data["visible"].toInt()),
                           static_cast<float>(context->saved_data["scale"].toDouble())};
    const auto out_gradient = gradients[0].stride(3) == 1 ? gradients[0] : gradients[0].contiguous();
    const int64_t n_heads = q.size(1), n_kv_heads = k.size(1), group = n_heads / n_kv_heads,
                  n_keys = k.size(2);
    const auto dq = empty_token_major(q, n_heads, q.size(2), q.size(3));
    const auto dk = empty_token_major(q, n_kv_heads, n_keys, k.size(3)).zero_();
    const auto dv = empty_token_major(q, n_kv_heads, n_keys, v.size(3)).zero_();
    at::parallel_for(0, q.size(0) * n_kv_heads, 1, [&](int64_t begin, int64_t end) {
      Transposed keys(n_keys, k.size(3)), values(n_keys, v.size(3));
      ScoreBlock weights(n_keys), scores(n_keys);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / n_kv_heads, kv_head = i % n_kv_heads;
        const HeadView key = head_view(k, b, kv_head);
        keys.assign(key);
        values.assign(head_view(v, b, kv_head));
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          attention.backward(
              head_view(q, b, h), key, keys, values, head_view(out, b, h), head_view(out_gradient, b, h),
              logsumexp.const_data_ptr<float>() + (b * n_heads + h) * q.size(2),
              {head_view(dq, b, h), head_view(dk, b, kv_head), head_view(dv, b, kv_head)}, weights, scores);
        }
      }
    });
    return {dq, dk, dv, {}, {}};
  }
};

bool is_suitable(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat && x.numel() > 0 && x.stride(3) == 1 &&
         x.size(3) % kVectorWidth == 0;
}

}  // namespace

bool has_cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       Visible visible) {
  return has_avx512() && is_suitable(q) && is_suitable(k) && is_suitable(v) && q.size(0) == k.size(0) &&
         q.size(1) % k.size(1) == 0 && q.size(3) == k.size(3) &&
         k.sizes().slice(0, 3) == v.sizes().slice(0, 3) && q.size(2) >= kMinQueries &&
         k.size(2) <= kMaxKeys && (visible == Visible::all_keys || q.size(2) == k.size(2)) &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

torch::Tensor cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            Visible visible, double scale) {
  TORCH_CHECK(has_cpu_attention(q, k, v, visible) && scale > 0, "cpu_attention does not support queries ",
              q.sizes(), " over keys ", k.sizes(), " with scale ", scale,
              ": check has_cpu_attention() first");
  return CpuAttention::apply(q, k, v, visible, scale);
}

}  // namespace zoo
