#include "training/parallel/gradient_arrivals.h"

#include <torch/types.h>

namespace zoo {
namespace {

/// Sums in place would change tensors that are others' too.
torch::Tensor sum(const torch::Tensor& a, const torch::Tensor& b) {
  return a.defined() && b.defined() ? a + b : a.defined() ? a : b;
}

}  // namespace

GradientArrivals::GradientArrivals(const std::vector<torch::Tensor>& parameters, size_t n_parts,
                                   GradientReducer& reducer)
    : parameters_(parameters), reducer_(reducer), parts_(n_parts), n_missing_(parameters.size()) {
  for (auto& part : parts_) {
    part.gradients.resize(parameters.size());
    part.earlier.resize(parameters.size());
    part.has_arrived.resize(parameters.size());
  }
  for (auto& n : n_missing_) n = n_parts;
}

void GradientArrivals::listen(size_t part, std::vector<torch::Tensor> earlier) {
  if (!earlier.empty()) parts_[part].earlier = std::move(earlier);
  parts_[part].listens = true;
}

void GradientArrivals::arrive(size_t part, size_t i, const torch::Tensor& gradient) {
  auto& here = parts_[part];
  if (!here.listens || here.has_arrived[i]) return;
  const torch::NoGradGuard no_grad;
  here.has_arrived[i] = true;
  here.gradients[i] = sum(here.earlier[i], gradient);
  here.earlier[i].reset();
  if (--n_missing_[i] == 0) hand_on(i);
}

void GradientArrivals::finish(size_t part) {
  parts_[part].listens = true;
  for (size_t i = 0; i < parameters_.size(); ++i) arrive(part, i, {});
}

/// In the order of the parts, whichever came last.
void GradientArrivals::hand_on(size_t i) {
  torch::Tensor total;
  for (auto& part : parts_) {
    total = sum(total, part.gradients[i]);
    part.gradients[i].reset();
  }
  reducer_.ready(i, sum(parameters_[i].grad(), total));  // with that of the step's batches before
}

}  // namespace zoo
