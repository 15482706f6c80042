#include "layers/attention/column_storage.h"

#include <algorithm>

namespace zoo {

torch::Tensor with_capacity(const torch::Tensor& x, int64_t n, int64_t capacity) {
  auto result = torch::empty({x.size(0), x.size(1), capacity, x.size(3)}, x.options());
  if (n > 0) result.narrow(2, 0, n).copy_(x.narrow(2, 0, n));
  result.narrow(2, n, capacity - n).zero_();
  return result;
}

torch::Tensor joined_rows(const torch::Tensor& a, const torch::Tensor& b) {
  const int64_t n_a = a.size(2), n_b = b.size(2);
  auto result = torch::zeros({a.size(0) + b.size(0), a.size(1), std::max(n_a, n_b), a.size(3)}, a.options());
  result.narrow(0, 0, a.size(0)).narrow(2, 0, n_a).copy_(a);
  result.narrow(0, a.size(0), b.size(0)).narrow(2, 0, n_b).copy_(b);
  return result;
}

torch::Tensor rows_without_columns(int64_t n_rows, const torch::Tensor& like) {
  return torch::empty({n_rows, like.size(1), 0, like.size(3)}, like.options());
}

}  // namespace zoo
