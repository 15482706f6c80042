#include "tasks/matching/contrastive_loss.h"

#include <torch/types.h>

#include "base/error.h"

namespace zoo {

torch::Tensor contrastive_loss(const torch::Tensor& scores, PairScores kind) {
  const auto numbers = scores.to(torch::kFloat);
  const int64_t n = numbers.size(0);
  if (kind == PairScores::softmax) {
    const auto classes = torch::arange(n, numbers.options().dtype(torch::kInt64));
    const auto along = [&](const torch::Tensor& rows) {
      return at::cross_entropy_loss(rows, classes, {}, at::Reduction::Sum);
    };
    return (along(numbers) + along(numbers.t())) / 2;
  }
  const auto signs = 2 * torch::eye(n, numbers.options()) - 1;
  return -torch::log_sigmoid(signs * numbers).sum();
}

torch::Tensor ContrastiveLoss::loss(Model& model, const Batch& part) const {
  auto* const comparing = comparing_of(model);
  if (!comparing) throw UsageError("the contrastive loss is for a dual_encoder");
  const auto scores = comparing->scores(comparing->image_vectors(part), comparing->text_vectors(part));
  return contrastive_loss(scores, comparing->pair_scores());
}

}  // namespace zoo
