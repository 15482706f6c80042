#include "layers/weight_gradient.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "layers/small_products.h"

namespace zoo {

using namespace small_products;

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
  // So many rows at a time that those of X are still in the cache for the next outputs; and outputs so many
  // that a thread which takes them has whole blocks.
  constexpr int64_t rows_at_once = 128, outputs_at_once = 12;
  at::parallel_for(
      0, (n_outputs + outputs_at_once - 1) / outputs_at_once, 1, [&](int64_t begin, int64_t end) {
        const int64_t first = begin * outputs_at_once, last = std::min(end * outputs_at_once, n_outputs);
        for (int64_t row = 0; row < n; row += rows_at_once) {
          const auto multiply = row == 0 ? product<AddTo::zero> : product<AddTo::result>;
          multiply({.data = g + row * n_outputs + first, .row = 1, .step = n_outputs},
                   {.data = inputs + row * n_inputs, .row = n_inputs}, std::min(rows_at_once, n - row),
                   {.data = sums + first * n_inputs, .row = n_inputs}, last - first, n_inputs);
        }
      });
  return result;
}

}  // namespace zoo
