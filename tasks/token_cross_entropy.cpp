#include "tasks/token_cross_entropy.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "kernels/cross_entropy.h"

namespace zoo {
namespace {

constexpr int64_t kCpuLogitsBytes = int64_t{32} << 20, kGpuLogitsBytes = int64_t{1} << 30;

/// Targets on a GPU are checked by LibTorch's kernels.
void check_targets(const Model& model, const torch::Tensor& targets) {
  if (!targets.is_cpu() || targets.numel() == 0) return;
  if (const auto highest = targets.max().item<int64_t>(); highest >= model.n_outputs()) {
    throw DataError(
        fmt::format("the model cannot predict the token {}: it has model.vocab_size, {}, which is fewer than "
                    "the tokenizer has: leave the token out of the text",
                    highest, model.n_outputs()));
  }
}

/// The loss and its gradient by the logits, which it overwrites. Models without trained weights in front of
/// their logits need no gradient.
LossWithGradient loss_of(const torch::Tensor& logits, const torch::Tensor& targets,
                         const CrossEntropyOptions& options) {
  if (logits.requires_grad()) return cross_entropy_with_gradient(logits, targets, options);
  return {.loss = cross_entropy_sum(logits, targets, options), .gradient = {}};
}

}  // namespace

int64_t TokenCrossEntropy::targets_at_once(const Model& model) const {
  const int64_t bytes =
      options_.logits_bytes.value_or(model.device().is_cpu() ? kCpuLogitsBytes : kGpuLogitsBytes);
  return std::max(options_.fewest_targets, bytes / (model.n_outputs() * static_cast<int64_t>(sizeof(float))));
}

torch::Tensor TokenCrossEntropy::loss(Model& model, const Batch& part) const {
  check_targets(model, part.targets);
  return cross_entropy_sum(model.logits(model.features(part)), part.targets,
                           {.label_smoothing = options_.label_smoothing});
}

LossAndGradients TokenCrossEntropy::differentiate(Model& model, const Batch& part,
                                                  const GradientRequest& request) const {
  check_targets(model, part.targets);
  const int64_t chunk = targets_at_once(model);
  const auto features = model.features(part);
  if (part.n_targets() > chunk) return differentiate_in_chunks(model, part, features, chunk, request);
  const auto logits = model.logits(features);
  const auto [loss, gradient] =
      loss_of(logits, part.targets, {.label_smoothing = options_.label_smoothing, .weight = request.weight});
  request.before_last_pass({});
  return {.loss = loss, .gradients = gradients_of(logits, gradient, request.parameters)};
}

// The graph is cut at the features. Each chunk makes its gradient of the features at once, and frees its
// logits before the next chunk makes its own.
LossAndGradients TokenCrossEntropy::differentiate_in_chunks(Model& model, const Batch& part,
                                                            const torch::Tensor& features, int64_t chunk,
                                                            const GradientRequest& request) const {
  const auto all = features.detach();
  Gradients gradients(request.parameters.size()), feature_gradients;
  auto total = torch::zeros({}, all.options().dtype(torch::kFloat));
  const int64_t n = part.n_targets(), n_chunks = (n + chunk - 1) / chunk;
  for (int64_t i = 0; i < n_chunks; ++i) {
    const int64_t begin = n * i / n_chunks, count = n * (i + 1) / n_chunks - begin;
    auto inputs = request.parameters;
    inputs.push_back(all.narrow(0, begin, count).requires_grad_(features.requires_grad()));
    const auto logits = model.logits(inputs.back());
    const auto [loss, gradient] =
        loss_of(logits, part.targets.narrow(0, begin, count),
                {.label_smoothing = options_.label_smoothing, .weight = request.weight});
    total += loss;
    const auto logits_from = inputs.back();
    if (!logits_from.requires_grad()) inputs.pop_back();
    auto found = gradients_of(logits, gradient, inputs);
    if (logits_from.requires_grad()) {
      feature_gradients.push_back(found.back());
      found.pop_back();
    }
    add_gradients(gradients, found);
  }
  request.before_last_pass(gradients);
  // Nothing below the features may be trained.
  if (features.requires_grad())
    add_gradients(gradients, gradients_of(features, torch::cat(feature_gradients), request.parameters));
  return {.loss = total, .gradients = std::move(gradients)};
}

}  // namespace zoo
