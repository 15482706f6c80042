#include "layers/folding/confidence.h"

#include <algorithm>
#include <cmath>

#include "layers/folding/side_chains.h"

namespace zoo {
namespace {

/// The middles of the bins of errors, (K), of which the last has no end.
torch::Tensor error_middles(const torch::Tensor& logits) {
  const int64_t n = logits.size(-1);
  const double width = kLargestAlignedError / static_cast<double>(n - 2);
  return (torch::arange(n, logits.options().requires_grad(false)) + 0.5) * width;
}

}  // namespace

torch::Tensor expected_lddt(const torch::Tensor& logits) {
  const int64_t n = logits.size(-1);
  const auto middles = (torch::arange(n, logits.options().requires_grad(false)) + 0.5) / n;
  return logits.softmax(-1).matmul(middles);
}

torch::Tensor predicted_aligned_error(const torch::Tensor& logits) {
  return logits.softmax(-1).matmul(error_middles(logits));
}

torch::Tensor predicted_tm_score(const torch::Tensor& logits) {
  constexpr double shortest = 19;  // shorter chains have no scale of their own
  const double length = std::max(static_cast<double>(logits.size(0)), shortest);
  const double d0 = 1.24 * std::cbrt(length - 15) - 1.8;
  const auto score = 1 / (1 + error_middles(logits).square() / (d0 * d0));
  return logits.softmax(-1).matmul(score).mean(-1).max();
}

torch::Tensor distance_bins(const torch::Tensor& positions, int64_t n_bins) {
  constexpr double first = 3.375, last = 21.375;
  const auto atoms = positions.narrow(-2, 0, 3).unbind(-2);
  const auto cb = beta_carbons(atoms[0], atoms[1], atoms[2]);
  const auto squares = (cb.unsqueeze(-2) - cb.unsqueeze(-3)).square().sum(-1, true);
  const auto limits =
      torch::linspace(first, last, n_bins - 1, squares.options().requires_grad(false)).square();
  return (squares > limits).sum(-1);
}

}  // namespace zoo
