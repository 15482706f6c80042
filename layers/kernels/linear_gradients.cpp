#include "layers/kernels/linear_gradients.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "layers/kernels/small_products.h"

namespace zoo {

using namespace small_products;

namespace {

/// (m, n), left (m, k) times right (k, n).
torch::Tensor multiplied(Left left, Right right, int64_t m, int64_t k, int64_t n,
                         const torch::TensorOptions& options) {
  // The depth of a product at a time, so that these rows of the right matrix are still in the cache for the
  // next rows of the result; and of those so many that a thread which takes them has whole blocks.
  constexpr int64_t depth_at_once = 128, rows_at_once = 12;
  if (k == 0) return torch::zeros({m, n}, options);
  auto result = torch::empty({m, n}, options);
  float* const sums = result.mutable_data_ptr<float>();
  at::parallel_for(0, (m + rows_at_once - 1) / rows_at_once, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * rows_at_once, last = std::min(end * rows_at_once, m);
    for (int64_t depth = 0; depth < k; depth += depth_at_once) {
      const auto multiply = depth == 0 ? product<AddTo::zero> : product<AddTo::result>;
      multiply({.data = left.data + first * left.row + depth * left.step, .row = left.row, .step = left.step},
               {.data = right.data + depth * right.row, .row = right.row}, std::min(depth_at_once, k - depth),
               {.data = sums + first * n, .row = n}, last - first, n);
    }
  });
  return result;
}

}  // namespace

bool has_weight_gradient(const torch::Tensor& x) { return has_avx512() && x.size(1) % kVector == 0; }

torch::Tensor weight_gradient(const torch::Tensor& gradient, const torch::Tensor& x) {
  TORCH_CHECK(has_weight_gradient(x) && gradient.is_contiguous() && x.is_contiguous() &&
                  gradient.size(0) == x.size(0),
              "no kernel for the gradient of a weight from ", gradient.sizes(), " and ", x.sizes());
  const int64_t n = x.size(0), n_outputs = gradient.size(1), n_inputs = x.size(1);
  return multiplied({.data = gradient.const_data_ptr<float>(), .row = 1, .step = n_outputs},
                    {.data = x.const_data_ptr<float>(), .row = n_inputs}, n_outputs, n, n_inputs,
                    x.options());
}

bool has_input_gradient(const torch::Tensor& weight) {
  constexpr int64_t most_numbers = 1 << 16;
  return has_avx512() && weight.size(1) % kVector == 0 && weight.numel() > 0 &&
         weight.numel() <= most_numbers;
}

torch::Tensor input_gradient(const torch::Tensor& gradient, const torch::Tensor& weight) {
  TORCH_CHECK(has_input_gradient(weight) && gradient.is_contiguous() && weight.is_contiguous() &&
                  gradient.size(1) == weight.size(0),
              "no kernel for the gradient of an input from ", gradient.sizes(), " and ", weight.sizes());
  const int64_t n = gradient.size(0), n_outputs = weight.size(0), n_inputs = weight.size(1);
  return multiplied({.data = gradient.const_data_ptr<float>(), .row = n_outputs, .step = 1},
                    {.data = weight.const_data_ptr<float>(), .row = n_inputs}, n, n_outputs, n_inputs,
                    gradient.options());
}

}  // namespace zoo
