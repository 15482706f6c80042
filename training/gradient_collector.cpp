#include "training/gradient_collector.h"

#include <torch/types.h>

namespace zoo {
namespace {

/// Not in place: the tensors may be in use elsewhere.
torch::Tensor sum(const torch::Tensor& a, const torch::Tensor& b) {
  return a.defined() && b.defined() ? a + b : a.defined() ? a : b;
}

}  // namespace

GradientCollector::GradientCollector(const std::vector<torch::Tensor>& parameters, size_t n_parts,
                                     GradientReducer& reducer)
    : parameters_(parameters), reducer_(reducer), parts_(n_parts), n_missing_(parameters.size()) {
  for (auto& part : parts_) {
    part.gradients.resize(parameters.size());
    part.earlier.resize(parameters.size());
    part.is_ready.resize(parameters.size());
  }
  for (auto& n : n_missing_) n = n_parts;
}

void GradientCollector::begin_last_pass(size_t part, std::vector<torch::Tensor> earlier) {
  if (!earlier.empty()) parts_[part].earlier = std::move(earlier);
  parts_[part].in_last_pass = true;
}

void GradientCollector::mark_ready(size_t part, size_t i, const torch::Tensor& gradient) {
  auto& here = parts_[part];
  if (!here.in_last_pass || here.is_ready[i]) return;
  const torch::NoGradGuard no_grad;
  here.is_ready[i] = true;
  here.gradients[i] = sum(here.earlier[i], gradient);
  here.earlier[i].reset();
  if (--n_missing_[i] == 0) hand_to_reducer(i);
}

void GradientCollector::finish(size_t part) {
  parts_[part].in_last_pass = true;
  for (size_t i = 0; i < parameters_.size(); ++i) mark_ready(part, i, {});
}

/// Sums in the order of the parts, so that the result does not depend on which part came last.
void GradientCollector::hand_to_reducer(size_t i) {
  torch::Tensor total;
  for (auto& part : parts_) {
    total = sum(total, part.gradients[i]);
    part.gradients[i].reset();
  }
  const auto& earlier_batches = parameters_[i].grad();
  reducer_.mark_ready(i, sum(earlier_batches, total));
}

}  // namespace zoo
