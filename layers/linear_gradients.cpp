#include "layers/linear_gradients.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "layers/small_products.h"

namespace zoo {

using namespace small_products;

namespace {

// The depth of a product at a time, so that these rows of the right matrix are still in the cache for the
// next rows of the result; and of those so many that a thread which takes them has whole blocks.
constexpr int64_t kDepthAtOnce = 128, kRowsAtOnce = 12;

}  // namespace

bool has_weight_gradient(const torch::Tensor& x) { return has_avx512() && x.size(1) % kVector == 0; }

torch::Tensor weight_gradient(const torch::Tensor& gradient, const torch::Tensor& x) {
  TORCH_CHECK(has_weight_gradient(x) && gradient.is_contiguous() && x.is_contiguous() &&
                  gradient.size(0) == x.size(0),
              "no kernel for the gradient of a weight from ", gradient.sizes(), " and ", x.sizes());
  const int64_t n = x.size(0), n_outputs = gradient.size(1), n_inputs = x.size(1);
  if (n == 0) return torch::zeros({n_outputs, n_inputs}, x.options());
  auto result = torch::empty({n_outputs, n_inputs}, x.options());
  const float *const g = gradient.const_data_ptr<float>(), *const inputs = x.const_data_ptr<float>();
  float* const sums = result.mutable_data_ptr<float>();
  at::parallel_for(0, (n_outputs + kRowsAtOnce - 1) / kRowsAtOnce, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kRowsAtOnce, last = std::min(end * kRowsAtOnce, n_outputs);
    for (int64_t row = 0; row < n; row += kDepthAtOnce) {
      const auto multiply = row == 0 ? product<AddTo::zero> : product<AddTo::result>;
      multiply({.data = g + row * n_outputs + first, .row = 1, .step = n_outputs},
               {.data = inputs + row * n_inputs, .row = n_inputs}, std::min(kDepthAtOnce, n - row),
               {.data = sums + first * n_inputs, .row = n_inputs}, last - first, n_inputs);
    }
  });
  return result;
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
  auto result = torch::empty({n, n_inputs}, gradient.options());
  const float *const g = gradient.const_data_ptr<float>(), *const w = weight.const_data_ptr<float>();
  float* const sums = result.mutable_data_ptr<float>();
  at::parallel_for(0, (n + kRowsAtOnce - 1) / kRowsAtOnce, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kRowsAtOnce, last = std::min(end * kRowsAtOnce, n);
    for (int64_t output = 0; output < n_outputs; output += kDepthAtOnce) {
      const auto multiply = output == 0 ? product<AddTo::zero> : product<AddTo::result>;
      multiply({.data = g + first * n_outputs + output, .row = n_outputs, .step = 1},
               {.data = w + output * n_inputs, .row = n_inputs}, std::min(kDepthAtOnce, n_outputs - output),
               {.data = sums + first * n_inputs, .row = n_inputs}, last - first, n_inputs);
    }
  });
  return result;
}

}  // namespace zoo
