#include "kernels/tensor_lists.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include "kernels/grain.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

using Tensors = std::vector<torch::Tensor>;

/// Whether all are float on the CPU and without gaps in memory, so that they can be read in memory order.
bool suits(const Tensors& tensors) {
  return std::ranges::all_of(tensors, [](const torch::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == torch::kFloat && tensor.is_non_overlapping_and_dense();
  });
}

/// All tensors as one vector.
class Concatenation {
 public:
  explicit Concatenation(const Tensors& tensors) {
    for (const auto& tensor : tensors) {
      begins_.push_back(size_);
      data_.push_back(tensor.mutable_data_ptr<float>());
      size_ += tensor.numel();
    }
  }

  int64_t size() const { return size_; }

  /// Divides the numbers `begin` … `end` by tensor and calls visit(tensor index, numbers, offset, n) for
  /// each: `n` numbers that begin at `offset` in the tensor.
  template <class Visit>
  void for_each_tensor(int64_t begin, int64_t end, const Visit& visit) const {
    auto i = static_cast<size_t>(std::ranges::upper_bound(begins_, begin) - begins_.begin()) - 1;
    while (begin < end) {
      const int64_t stop = std::min(end, i + 1 < begins_.size() ? begins_[i + 1] : size_);
      if (stop > begin) visit(i, data_[i] + (begin - begins_[i]), begin - begins_[i], stop - begin);
      begin = stop;
      ++i;
    }
  }

 private:
  std::vector<int64_t> begins_;
  std::vector<float*> data_;
  int64_t size_ = 0;
};

}  // namespace

void foreach_add_(const Tensors& sums, const Tensors& terms) {
  if (sums.empty()) return;
  const torch::NoGradGuard no_grad;
  const auto same_strides = [](const torch::Tensor& a, const torch::Tensor& b) {
    return a.strides() == b.strides();
  };
  if (!suits(sums) || !suits(terms) || !std::ranges::equal(sums, terms, same_strides))
    return at::_foreach_add_(sums, terms);
  const Concatenation to(sums);
  at::parallel_for(0, to.size(), kGrainSize, [&](int64_t begin, int64_t end) {
    to.for_each_tensor(begin, end, [&](size_t i, float* sum, int64_t offset, int64_t n) {
      kernels().add(sum, terms[i].const_data_ptr<float>() + offset, n);
    });
  });
}

torch::Tensor total_norm(const Tensors& tensors) {
  const torch::NoGradGuard no_grad;
  if (!suits(tensors)) return at::linalg_vector_norm(at::stack(at::_foreach_norm(tensors)));
  const Concatenation all(tensors);
  std::vector<double> squares(static_cast<size_t>((all.size() + kGrainSize - 1) / kGrainSize));
  at::parallel_for(0, static_cast<int64_t>(squares.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kGrainSize, end = std::min(begin + kGrainSize, all.size());
      all.for_each_tensor(begin, end, [&](size_t, const float* x, int64_t, int64_t n) {
        squares[static_cast<size_t>(block)] += kernels().sum_of_squares(x, n);
      });
    }
  });
  double sum = 0;
  for (const double part : squares) sum += part;
  return torch::scalar_tensor(std::sqrt(sum), torch::kFloat);
}

void foreach_mul_(const Tensors& tensors, const torch::Tensor& factor) {
  if (tensors.empty()) return;
  const torch::NoGradGuard no_grad;
  if (!suits(tensors) || !factor.is_cpu()) return at::_foreach_mul_(tensors, factor);
  const auto by = factor.item<float>();
  if (by == 1) return;
  const Concatenation all(tensors);
  at::parallel_for(0, all.size(), kGrainSize, [&](int64_t begin, int64_t end) {
    all.for_each_tensor(begin, end,
                        [&](size_t, float* x, int64_t, int64_t n) { kernels().multiply(x, by, n); });
  });
}

}  // namespace zoo
