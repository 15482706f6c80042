#include "analysis/causes/ablation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/causes/part_replacement.h"
#include "base/error.h"
#include "models/inference_scope.h"
#include "tasks/label_loss.h"

namespace zoo {
namespace {

void add(AblationScore& score, const Batch& batch, const torch::Tensor& logits, Problem problem) {
  const auto targets = batch.targets.to(logits.device());
  score.nats += label_losses(problem, logits.to(torch::kFloat), targets).sum().item<double>();
  score.targets += batch.n_targets();
  if (!targets.is_floating_point()) score.right += logits.argmax(-1).eq(targets).sum().item<int64_t>();
}

}  // namespace

Ablation::Ablation(Model& model, std::vector<Batch> batches, AblationBy by, std::vector<Batch> references,
                   Problem problem)
    : model_(model),
      batches_(std::move(batches)),
      references_(std::move(references)),
      by_(by),
      problem_(problem) {
  TORCH_CHECK(!batches_.empty(), "an ablation needs a batch");
  if (by == AblationBy::resample && is_own_reference() && batches_.size() == 1 &&
      batches_.front().n_rows() == 1)
    throw UsageError(
        "activations of another text are needed, and there is one text: give two, or choose mean");
  for (const auto& batch : batches_)
    if (!batch.targets.defined())
      throw UsageError("a batch without targets has no loss: ablate on other data");
  first_ = record_activations(model_, model_.on_device(batches_.front()));
  if (by_ == AblationBy::mean) means_ = mean_activations(model_, this->references());
  whole_ = without({});
}

size_t Ablation::donor_of(size_t index) const {
  return (is_own_reference() ? index + 1 : index) % references().size();
}

torch::Tensor Ablation::replacement(const ActivationPlace& place, size_t index, const torch::Tensor& x) {
  switch (by_) {
    case AblationBy::zero:
      return torch::zeros_like(x);
    case AblationBy::mean:
      return means_.at(place).to(x.scalar_type());
    case AblationBy::resample:
      break;
  }
  const auto lengths = lengths_at(place, references()[donor_of(index)]);
  return activations_of_others(x, donors_.at(place), lengths,
                               is_own_reference() && batches_.size() == 1 ? 1 : 0);
}

torch::Tensor Ablation::logits(size_t index, const std::vector<AblatedPart>& parts,
                               const std::vector<int64_t>& positions) {
  const InferenceScope inference(model_);
  if (by_ == AblationBy::resample && !parts.empty()) {
    const size_t from = donor_of(index);
    if (donor_index_ != from) {
      donors_ = record_activations(model_, model_.on_device(references()[from]));
      donor_index_ = from;
    }
  }
  PartReplacer replacer(parts, positions, [&](const ActivationPlace& place, const torch::Tensor& x) {
    return replacement(place, index, x);
  });
  const ObservationScope scope(model_, replacer);
  return model_.logits(model_.features(model_.on_device(batches_.at(index))));
}

void Ablation::require_positions(const ActivationPlace& place, const std::vector<int64_t>& positions) const {
  if (positions.empty()) return;
  int64_t longest = 0;
  for (const auto& batch : batches_) {
    const bool decodes = place.side == StackSide::decoder && place.kind != ActivationKind::memory;
    const auto& ids = (decodes ? batch.decoder : batch.input).ids;
    longest = std::max(longest, ids.defined() ? ids.size(1) : first_.at(place).size(1));
  }
  const int64_t last = std::ranges::max(positions);
  if (last >= longest)
    throw UsageError(
        fmt::format("there is no position {}: the longest row has {} of them, from 0", last, longest));
}

AblationScore Ablation::without(const std::vector<AblatedPart>& parts,
                                const std::vector<int64_t>& positions) {
  for (const auto& part : parts) {
    require_part(part, first_);
    require_positions(part.place, positions);
  }
  const InferenceScope inference(model_);
  AblationScore score;
  for (size_t i = 0; i < batches_.size(); ++i) add(score, batches_[i], logits(i, parts, positions), problem_);
  if (std::isnan(score.nats)) fail_not_a_number();
  return score;
}

std::string AblatedPart::name() const {
  return head ? fmt::format("{}.{}", place.name(), *head) : place.name();
}

std::vector<AblatedPart> all_parts(const Activations& activations) {
  std::vector<AblatedPart> parts;
  for (const auto& [place, x] : activations) {
    switch (place.kind) {
      case ActivationKind::attention_heads:
      case ActivationKind::cross_attention_heads:
        for (int64_t head = 0; head < x.size(2); ++head) parts.push_back({.place = place, .head = head});
        break;
      case ActivationKind::attention:
      case ActivationKind::cross_attention:
      case ActivationKind::feed_forward:
        parts.push_back({.place = place});
        break;
      case ActivationKind::residual:
      case ActivationKind::memory:
        break;
    }
  }
  std::ranges::stable_sort(parts, [](const AblatedPart& a, const AblatedPart& b) {
    return std::pair(a.place.side, a.place.layer) < std::pair(b.place.side, b.place.layer);
  });
  return parts;
}

void require_part(const AblatedPart& part, const Activations& activations) {
  const auto found = activations.find(part.place);
  if (found == activations.end()) {
    const bool two_sides = activations.begin()->first.side != StackSide::only;
    const bool has_side = part.place.side != StackSide::only;
    throw UsageError(fmt::format(
        "the model has no {}{}", part.name(),
        two_sides && !has_side   ? ": it has two sides, so begin with encoder. or decoder., or with cross."
        : !two_sides && has_side ? ": it has one side, so leave out encoder. and decoder."
                                 : ": see its layers with `zoo inspect`; layers and heads count from 0"));
  }
  if (part.head && *part.head >= found->second.size(2))
    throw UsageError(fmt::format("the model has no {}: {} has the heads 0 to {}", part.name(),
                                 part.place.name(), found->second.size(2) - 1));
}

}  // namespace zoo
