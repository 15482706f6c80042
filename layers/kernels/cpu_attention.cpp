#include "layers/kernels/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "layers/kernels/first_derivative.h"
#include "layers/kernels/small_products.h"

namespace zoo {
namespace {

using namespace small_products;
using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

// Queries at a time. More of them let fewer keys be left out, fewer make smaller products.
constexpr int64_t kTogether = 24;
// Beyond, the rows of weights and the keys leave the cache, and LibTorch's kernel, which cuts both, is as
// fast.
constexpr int64_t kMostKeys = 2048;
// With fewer, bringing the keys into another order costs more than what is done with them.
constexpr int64_t kFewestQueries = 8;

int64_t padded(int64_t n) { return (n + kVector - 1) / kVector * kVector; }

/// One head: rows that lie anywhere, of numbers that lie side by side.
struct Head {
  float* data;
  int64_t row, n_rows, width;

  float* operator[](int64_t i) const { return data + i * row; }
  Right right() const { return {.data = data, .row = row}; }
};

Head head(const torch::Tensor& x, int64_t b, int64_t h) {  // x: (B, H, T, D)
  return {.data = static_cast<float*>(x.data_ptr()) + b * x.stride(0) + h * x.stride(1),
          .row = x.stride(2),
          .n_rows = x.size(2),
          .width = x.size(3)};
}

/// A head's transpose (D, padded T), zeros where there are no rows.
class Transposed {
 public:
  Transposed(int64_t n_rows, int64_t width)
      : row_(padded(n_rows)),
        numbers_(torch::zeros({width, row_})),
        data_(numbers_.mutable_data_ptr<float>()) {}

  ZOO_AVX512 void assign(const Head& x) {
    for (int64_t first = 0; first < x.n_rows; first += kVector) {
      const int64_t end = std::min(first + kVector, x.n_rows);
      for (int64_t j = 0; j < x.width; ++j)
        for (int64_t i = first; i < end; ++i) data_[j * row_ + i] = x[i][j];
    }
  }
  Right right() const { return {.data = data_, .row = row_}; }

 private:
  int64_t row_;
  torch::Tensor numbers_;  // memory that is kept from one call to the next
  float* data_;
};

/// Scores, weights and their gradients of kTogether queries.
class Rows {
 public:
  explicit Rows(int64_t n_keys)
      : row_(padded(n_keys)),
        numbers_(torch::empty({kTogether, row_})),
        data_(numbers_.mutable_data_ptr<float>()) {}

  float* operator[](int64_t i) { return data_ + i * row_; }
  Result result() { return {.data = data_, .row = row_}; }
  Left left() const { return {.data = data_, .row = row_, .step = 1}; }
  Left transposed() const { return {.data = data_, .row = 1, .step = row_}; }

 private:
  int64_t row_;
  torch::Tensor numbers_;
  float* data_;
};

using Integers = uint32_t __attribute__((vector_size(kVector * sizeof(uint32_t))));

ZOO_AVX512 ZOO_INLINE Vector& vector_at(float* x) { return *reinterpret_cast<Vector*>(x); }
ZOO_AVX512 ZOO_INLINE Vector vector_at(const float* x) { return *reinterpret_cast<const Vector*>(x); }

template <int N>
ZOO_AVX512 ZOO_INLINE Vector rotated(Vector x) {
  return __builtin_shufflevector(x, x, N, N + 1, N + 2, N + 3, N + 4, N + 5, N + 6, N + 7, N + 8, N + 9,
                                 N + 10, N + 11, N + 12, N + 13, N + 14, N + 15);
}

ZOO_AVX512 ZOO_INLINE Vector larger(Vector x, Vector y) { return x > y ? x : y; }

/// e^x for x ≤ 0 to about 1e-7, as in layers/kernels/row_kernels.h, but sixteen at a time, and 0 for what is
/// below 1e-37.
ZOO_AVX512 ZOO_INLINE Vector exp_of_negatives(Vector x) {
  constexpr float least = -85.0F, log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  constexpr float to_integer = 12582912.0F;
  const Vector shifted = x * log2_e + to_integer;
  const Vector n = shifted - to_integer;
  const Vector r = (x - n * ln2_high) - n * ln2_low;
  Vector p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const Vector result = (Vector)((Integers)p + ((Integers)shifted << 23));
  return x < least ? Vector{} : result;
}

/// Makes the scores from `n` to `n_padded` those of keys that are not seen.
void hide(float* scores, int64_t n, int64_t n_padded) {
  std::fill(scores + n, scores + n_padded, -std::numeric_limits<float>::infinity());
}

// The numbers of elements here are multiples of kVector.

ZOO_AVX512 ZOO_INLINE float largest(const float* x, int64_t n) {
  Vector lanes = vector_at(x);
  for (int64_t i = kVector; i < n; i += kVector) lanes = larger(lanes, vector_at(x + i));
  lanes = larger(lanes, rotated<8>(lanes));
  lanes = larger(lanes, rotated<4>(lanes));
  lanes = larger(lanes, rotated<2>(lanes));
  return larger(lanes, rotated<1>(lanes))[0];
}

ZOO_AVX512 ZOO_INLINE float sum(Vector lanes) {
  lanes += rotated<8>(lanes);
  lanes += rotated<4>(lanes);
  lanes += rotated<2>(lanes);
  lanes += rotated<1>(lanes);
  return lanes[0];
}

ZOO_AVX512 ZOO_INLINE float dot(const float* x, const float* y, int64_t n) {
  Vector lanes = {};
  for (int64_t i = 0; i < n; i += kVector) lanes += vector_at(x + i) * vector_at(y + i);
  return sum(lanes);
}

/// x := e^(scale·x - shift), where that is at most 1 but for rounding; returns the sum.
ZOO_AVX512 ZOO_INLINE float exponentials(float* x, int64_t n, float scale, float shift) {
  Vector lanes = {};
  for (int64_t i = 0; i < n; i += kVector) {
    const Vector result = exp_of_negatives(vector_at(x + i) * scale - shift);
    vector_at(x + i) = result;
    lanes += result;
  }
  return sum(lanes);
}

ZOO_AVX512 ZOO_INLINE void multiply(float* x, int64_t n, float factor) {
  for (int64_t i = 0; i < n; i += kVector) vector_at(x + i) *= factor;
}

/// The gradient of the weights becomes that of the scores: weight·(gradient - delta)·scale.
ZOO_AVX512 ZOO_INLINE void through_softmax(float* gradient, const float* weights, int64_t n, float delta,
                                           float scale) {
  for (int64_t i = 0; i < n; i += kVector)
    vector_at(gradient + i) = vector_at(weights + i) * (vector_at(gradient + i) - delta) * scale;
}

struct Kernel {
  Visible visible;
  float scale;

  int64_t n_visible(int64_t query, int64_t n_keys) const {
    return visible == Visible::all_keys ? n_keys : query + 1;
  }

  /// out and log_sums (T), the logarithms of what the exponentials sum to.
  ZOO_AVX512 void forward(const Head& q, const Head& v, const Transposed& keys, const Head& out,
                          float* log_sums, Rows& rows) const {
    for (int64_t first = 0; first < q.n_rows; first += kTogether) {
      const int64_t m = std::min(kTogether, q.n_rows - first), n = n_visible(first + m - 1, v.n_rows);
      product<AddTo::zero>({.data = q[first], .row = q.row, .step = 1}, keys.right(), q.width, rows.result(),
                           m, padded(n));
      float sums[kTogether];
      for (int64_t i = 0; i < m; ++i) {
        hide(rows[i], n_visible(first + i, v.n_rows), padded(n));
        const float shift = scale * largest(rows[i], padded(n));
        sums[i] = exponentials(rows[i], padded(n), scale, shift);
        log_sums[first + i] = shift + std::log(sums[i]);
      }
      product<AddTo::zero>(rows.left(), v.right(), n, {.data = out[first], .row = out.row}, m, v.width);
      for (int64_t i = 0; i < m; ++i) multiply(out[first + i], v.width, 1 / sums[i]);
    }
  }

  struct Gradients {
    Head q, k, v;  // that of q is made, to the others is added
  };

  ZOO_AVX512 void backward(const Head& q, const Head& k, const Transposed& keys, const Transposed& values,
                           const Head& out, const Head& out_gradient, const float* log_sums,
                           const Gradients& gradients, Rows& weights, Rows& scores) const {
    for (int64_t first = 0; first < q.n_rows; first += kTogether) {
      const int64_t m = std::min(kTogether, q.n_rows - first), n = n_visible(first + m - 1, k.n_rows);
      const Left queries{.data = q[first], .row = q.row, .step = 1};
      const Left above{.data = out_gradient[first], .row = out_gradient.row, .step = 1};
      product<AddTo::zero>(queries, keys.right(), q.width, weights.result(), m, padded(n));
      product<AddTo::zero>(above, values.right(), out.width, scores.result(), m, padded(n));
      for (int64_t i = 0; i < m; ++i) {
        hide(weights[i], n_visible(first + i, k.n_rows), padded(n));
        exponentials(weights[i], padded(n), scale, log_sums[first + i]);
        const float delta = dot(out[first + i], out_gradient[first + i], out.width);
        through_softmax(scores[i], weights[i], padded(n), delta, scale);
      }
      product<AddTo::zero>(scores.left(), k.right(), n, {.data = gradients.q[first], .row = gradients.q.row},
                           m, q.width);
      product<AddTo::result>(scores.transposed(), {.data = q[first], .row = q.row}, m,
                             {.data = gradients.k.data, .row = gradients.k.row}, n, q.width);
      product<AddTo::result>(weights.transposed(), {.data = out_gradient[first], .row = out_gradient.row}, m,
                             {.data = gradients.v.data, .row = gradients.v.row}, n, out.width);
    }
  }
};

/// (B, H, T, D) that lies as (B, T, H, D).
torch::Tensor token_by_token(const torch::Tensor& like, int64_t n_heads, int64_t n_rows, int64_t width) {
  return torch::empty_strided({like.size(0), n_heads, n_rows, width},
                              {n_rows * n_heads * width, width, n_heads * width, 1}, like.options());
}

struct CpuAttention : torch::autograd::Function<CpuAttention> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& q, const torch::Tensor& k,
                               const torch::Tensor& v, Visible visible, double scale) {
    const Kernel attention{visible, static_cast<float>(scale)};
    const int64_t n_heads = q.size(1), n_kv_heads = k.size(1), group = n_heads / n_kv_heads,
                  n_keys = k.size(2);
    const auto out = token_by_token(q, n_heads, q.size(2), v.size(3));
    const auto log_sums = torch::empty({q.size(0), n_heads, q.size(2)}, q.options());
    at::parallel_for(0, q.size(0) * n_kv_heads, 1, [&](int64_t begin, int64_t end) {
      Transposed keys(n_keys, k.size(3));
      Rows rows(n_keys);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / n_kv_heads, kv_head = i % n_kv_heads;
        keys.assign(head(k, b, kv_head));
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          attention.forward(head(q, b, h), head(v, b, kv_head), keys, head(out, b, h),
                            log_sums.mutable_data_ptr<float>() + (b * n_heads + h) * q.size(2), rows);
        }
      }
    });
    context->save_for_backward({q, k, v, out, log_sums});
    context->saved_data["visible"] = static_cast<int64_t>(visible);
    context->saved_data["scale"] = scale;
    return out;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("attention");
    const auto saved = context->get_saved_variables();
    const auto &q = saved[0], &k = saved[1], &v = saved[2], &out = saved[3], &log_sums = saved[4];
    const Kernel attention{static_cast<Visible>(context->saved_data["visible"].toInt()),
                           static_cast<float>(context->saved_data["scale"].toDouble())};
    const auto out_gradient = gradients[0].stride(3) == 1 ? gradients[0] : gradients[0].contiguous();
    const int64_t n_heads = q.size(1), n_kv_heads = k.size(1), group = n_heads / n_kv_heads,
                  n_keys = k.size(2);
    const auto dq = token_by_token(q, n_heads, q.size(2), q.size(3));
    const auto dk = token_by_token(q, n_kv_heads, n_keys, k.size(3)).zero_();
    const auto dv = token_by_token(q, n_kv_heads, n_keys, v.size(3)).zero_();
    at::parallel_for(0, q.size(0) * n_kv_heads, 1, [&](int64_t begin, int64_t end) {
      Transposed keys(n_keys, k.size(3)), values(n_keys, v.size(3));
      Rows weights(n_keys), scores(n_keys);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / n_kv_heads, kv_head = i % n_kv_heads;
        const Head key = head(k, b, kv_head);
        keys.assign(key);
        values.assign(head(v, b, kv_head));
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          attention.backward(head(q, b, h), key, keys, values, head(out, b, h), head(out_gradient, b, h),
                             log_sums.const_data_ptr<float>() + (b * n_heads + h) * q.size(2),
                             {head(dq, b, h), head(dk, b, kv_head), head(dv, b, kv_head)}, weights, scores);
        }
      }
    });
    return {dq, dk, dv, {}, {}};
  }
};

bool is_suitable(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat && x.numel() > 0 && x.stride(3) == 1 &&
         x.size(3) % kVector == 0;
}

}  // namespace

bool has_cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       Visible visible) {
  return has_avx512() && is_suitable(q) && is_suitable(k) && is_suitable(v) && q.size(0) == k.size(0) &&
         q.size(1) % k.size(1) == 0 && q.size(3) == k.size(3) &&
         k.sizes().slice(0, 3) == v.sizes().slice(0, 3) && q.size(2) >= kFewestQueries &&
         k.size(2) <= kMostKeys && (visible == Visible::all_keys || q.size(2) == k.size(2)) &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

torch::Tensor cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            Visible visible, double scale) {
  TORCH_CHECK(has_cpu_attention(q, k, v, visible) && scale > 0, "no kernel for attention of ", q.sizes(),
              " over ", k.sizes(), " with scale ", scale);
  return CpuAttention::apply(q, k, v, visible, scale);
}

}  // namespace zoo
