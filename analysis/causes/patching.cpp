#include "analysis/causes/patching.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/causes/repeated_rows.h"
#include "base/error.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

constexpr int64_t kVectorsAtOnce = 2048;  // rows times positions of a pass

/// Row r of every activation gets what patch r says.
class RowPatcher final : public ActivationObserver {
 public:
  RowPatcher(const Activations& clean, std::span<const Patch> patches) : clean_(clean), patches_(patches) {}

  torch::Tensor on(const ActivationPlace& place, const torch::Tensor& x) override {
    torch::Tensor result;
    for (size_t r = 0; r < patches_.size(); ++r) {
      const auto& [part, position] = patches_[r];
      if (part.place != place) continue;
      if (!result.defined()) result = x.clone();
      auto into = result[static_cast<int64_t>(r)];  // (T, …)
      auto from = clean_.at(place)[0];
      if (part.head) into = into.select(1, *part.head), from = from.select(1, *part.head);
      if (position) into = into[*position], from = from[*position];
      into.copy_(from);
    }
    return result.defined() ? result : x;
  }

 private:
  const Activations& clean_;
  std::span<const Patch> patches_;
};

std::vector<Patch> patches_of_heads(const Activations& activations) {
  std::vector<Patch> patches;
  for (const auto& part : all_parts(activations))
    if (part.head) patches.push_back({.part = part});
  return patches;
}

/// Each residual stream and sub-layer at each position. The last residual is the answer itself.
std::vector<Patch> patches_of_positions(const Activations& activations) {
  std::vector<Patch> patches;
  for (const auto& [place, x] : activations) {
    if (place.kind == ActivationKind::attention_heads ||
        place.kind == ActivationKind::cross_attention_heads || place.kind == ActivationKind::memory)
      continue;
    for (int64_t t = 0; t < x.size(1); ++t) patches.push_back({.part = {.place = place}, .position = t});
  }
  return patches;
}

void require_same_length(const Question& clean, const Question& corrupt) {
  const auto check = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    if (a.size() == b.size()) return;
    throw UsageError(
        fmt::format("the clean text has {} tokens and the corrupted one {}: give texts of the same number of "
                    "tokens, so that "
                    "each position has its counterpart",
                    a.size(), b.size()));
  };
  check(clean.source_tokens, corrupt.source_tokens);
  check(clean.target_tokens, corrupt.target_tokens);
}

/// patched_logits() of patches that share a pass: (P, V).
torch::Tensor logits_of_pass(Model& model, const Activations& clean, const Batch& corrupt, int64_t place,
                             std::span<const Patch> patches) {
  const auto n = std::ssize(patches);
  RowPatcher patcher(clean, patches);
  const ObservationScope scope(model, patcher);
  const auto features = model.features(repeated_rows(corrupt, n));  // (n·M, D)
  return model.logits(features.view({n, -1, features.size(-1)}).select(1, place))
      .to(torch::kCPU, torch::kDouble);
}

/// The next patches, from `first` on, as many as share a pass.
std::span<const Patch> next_patches(const std::vector<Patch>& patches, size_t first, const Batch& batch) {
  const auto most = static_cast<size_t>(rows_at_once(batch, kVectorsAtOnce));
  return std::span(patches).subspan(first, std::min(most, patches.size() - first));
}

}  // namespace

torch::Tensor patched_logits(Model& model, const Batch& clean, const Batch& corrupt, int64_t place,
                             const std::vector<Patch>& patches) {
  const InferenceScope inference(model);
  const auto activations = record_activations(model, clean);
  for (const auto& patch : patches) require_part(patch.part, activations);
  std::vector<torch::Tensor> found;
  for (size_t first = 0; first < patches.size();) {
    const auto some = next_patches(patches, first, corrupt);
    found.push_back(logits_of_pass(model, activations, corrupt, place, some));
    first += some.size();
  }
  return torch::cat(found);
}

double Patching::difference(const torch::Tensor& logits) const {
  return (logits[report_.answer] - logits[report_.against]).item<double>();
}

Patching::Patching(Model& model, Question clean, Question corrupt, const PatchRequest& request)
    : model_(model) {
  require_same_length(clean, corrupt);
  const InferenceScope inference(model);
  auto& report = report_;
  report.place = request.place.value_or(clean.place);
  require_place(clean, report.place, "position");
  const auto logits_of = [&](const Question& question) {
    return model.logits(model.features(question.batch))[report.place].to(torch::kCPU, torch::kDouble);
  };
  const auto clean_logits = logits_of(clean), corrupt_logits = logits_of(corrupt);
  if (clean_logits.isnan().any().item<bool>() || corrupt_logits.isnan().any().item<bool>())
    fail_not_a_number();
  report.answer = request.answer.value_or(clean_logits.argmax().item<int64_t>());
  report.against = request.against.value_or(corrupt_logits.argmax().item<int64_t>());
  if (report.answer == report.against)
    throw UsageError(fmt::format(
        "both texts have the answer “{}”: name two outputs with answer and against, or change a text",
        clean.label(report.answer)));
  report.clean_difference = difference(clean_logits);
  report.corrupt_difference = difference(corrupt_logits);
  if (std::abs(report.clean_difference - report.corrupt_difference) < 1e-6)
    throw UsageError(
        "the model does not tell the texts apart: its answers differ as much on both; change a text");
  activations_ = record_activations(model, clean.batch);
  patches_ = patches_of_heads(activations_);
  const auto positions = patches_of_positions(activations_);
  patches_.insert(patches_.end(), positions.begin(), positions.end());
  report.clean = std::move(clean);
  report.corrupt = std::move(corrupt);
}

void Patching::go_on() {
  const InferenceScope inference(model_);
  const auto patches = next_patches(patches_, n_done_, report_.corrupt.batch);
  const auto logits = logits_of_pass(model_, activations_, report_.corrupt.batch, report_.place, patches);
  const double whole = report_.clean_difference - report_.corrupt_difference;
  for (size_t i = 0; i < patches.size(); ++i) {
    const double found = difference(logits[static_cast<int64_t>(i)]);
    auto& list = patches[i].position ? report_.positions : report_.heads;
    list.push_back({.patch = patches[i],
                    .difference = found,
                    .recovered = (found - report_.corrupt_difference) / whole});
  }
  n_done_ += patches.size();
}

PatchReport patch_report(Model& model, Question clean, Question corrupt, const PatchRequest& request) {
  Patching patching(model, std::move(clean), std::move(corrupt), request);
  while (patching.has_more()) patching.go_on();
  return std::move(patching).report();
}

}  // namespace zoo
