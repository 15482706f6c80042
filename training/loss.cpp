#include "training/loss.h"

#include <torch/types.h>

namespace zoo {

torch::Tensor cross_entropy_sum(Model& model, const torch::Tensor& features, const torch::Tensor& targets,
                                double label_smoothing) {
  constexpr int64_t ignore_nothing = -100;
  return at::cross_entropy_loss(model.logits(features).to(torch::kFloat), targets, /*weight=*/{},
                                at::Reduction::Sum, ignore_nothing, label_smoothing);
}

}  // namespace zoo
