#include "kernels/linear_gradients.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

/// A (m, k) times B (k, n) on all threads.
torch::Tensor parallel_gemm(MatrixA a, MatrixB b, int64_t m, int64_t k, int64_t n,
                            const torch::TensorOptions& options) {
  // k_block rows of B stay in the cache for all rows of C that a thread computes. A thread gets multiples of
  // m_block rows, of which gemm keeps whole blocks in registers.
  constexpr int64_t k_block = 128, m_block = 12;
  if (k == 0) return torch::zeros({m, n}, options);
  auto result = torch::empty({m, n}, options);
  float* const c = result.mutable_data_ptr<float>();
  at::parallel_for(0, (m + m_block - 1) / m_block, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * m_block, last = std::min(end * m_block, m);
    for (int64_t k_begin = 0; k_begin < k; k_begin += k_block) {
      const auto gemm = k_begin == 0 ? kernels().gemm : kernels().add_gemm;
      gemm({.data = a.data + first * a.row_stride + k_begin * a.column_stride,
            .row_stride = a.row_stride,
            .column_stride = a.column_stride},
           {.data = b.data + k_begin * b.row_stride, .row_stride = b.row_stride},
           std::min(k_block, k - k_begin), {.data = c + first * n, .row_stride = n}, last - first, n);
    }
  });
  return result;
}

}  // namespace

bool has_weight_gradient(const torch::Tensor& x) { return x.size(1) % kWidestVector == 0; }

torch::Tensor weight_gradient(const torch::Tensor& gradient, const torch::Tensor& x) {
  TORCH_CHECK(has_weight_gradient(x) && gradient.is_contiguous() && x.is_contiguous() &&
                  gradient.size(0) == x.size(0),
              "weight_gradient does not support a gradient ", gradient.sizes(), " and an input ", x.sizes(),
              ": check has_weight_gradient() first");
  const int64_t n = x.size(0), n_outputs = gradient.size(1), n_inputs = x.size(1);
  return parallel_gemm(
      {.data = gradient.const_data_ptr<float>(), .row_stride = 1, .column_stride = n_outputs},
      {.data = x.const_data_ptr<float>(), .row_stride = n_inputs}, n_outputs, n, n_inputs, x.options());
}

bool has_input_gradient(const torch::Tensor& weight) {
  constexpr int64_t max_numbers = 1 << 16;
  return weight.size(1) % kWidestVector == 0 && weight.numel() > 0 && weight.numel() <= max_numbers;
}

torch::Tensor input_gradient(const torch::Tensor& gradient, const torch::Tensor& weight) {
  TORCH_CHECK(has_input_gradient(weight) && gradient.is_contiguous() && weight.is_contiguous() &&
                  gradient.size(1) == weight.size(0),
              "input_gradient does not support a gradient ", gradient.sizes(), " and a weight ",
              weight.sizes(), ": check has_input_gradient() first");
  const int64_t n = gradient.size(0), n_outputs = weight.size(0), n_inputs = weight.size(1);
  return parallel_gemm(
      {.data = gradient.const_data_ptr<float>(), .row_stride = n_outputs, .column_stride = 1},
      {.data = weight.const_data_ptr<float>(), .row_stride = n_inputs}, n, n_outputs, n_inputs,
      gradient.options());
}

}  // namespace zoo
