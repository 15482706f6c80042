#include "analysis/causes/ablation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "models/inference_scope.h"
#include "tasks/label_loss.h"

namespace zoo {
namespace {

/// The lengths of the rows at a place, on the CPU; undefined: all are full.
torch::Tensor lengths_at(const ActivationPlace& place, const Batch& batch) {
  const bool decodes =
      batch.decoder.defined() && place.side == StackSide::decoder && place.kind != ActivationKind::memory;
  const auto& lengths = decodes ? batch.decoder.lengths : batch.input.lengths;
  return lengths.defined() ? lengths.to(torch::kCPU) : lengths;
}

/// Calls a function for x at each place that is ablated.
class Replacer final : public ActivationObserver {
 public:
  using Replacement = std::function<torch::Tensor(const ActivationPlace&, const torch::Tensor&)>;
  Replacer(const std::vector<AblatedPart>& parts, const std::vector<int64_t>& positions,
           Replacement replacement)
      : parts_(parts), positions_(positions), replacement_(std::move(replacement)) {}

  torch::Tensor on(const ActivationPlace& place, const torch::Tensor& x) override {
    torch::Tensor result;
    for (const auto& part : parts_) {
      if (part.place != place) continue;
      if (!result.defined()) result = x.clone();
      const auto other = replacement_(place, x).expand_as(x);
      const auto of_head = [&](const torch::Tensor& all) {
        return part.head ? all.select(2, *part.head) : all;
      };
      auto into = of_head(result);
      if (positions_.empty()) into.copy_(of_head(other));
      for (const int64_t position : positions_)
        if (position < x.size(1)) into.select(1, position).copy_(of_head(other).select(1, position));
    }
    return result.defined() ? result : x;
  }

 private:
  const std::vector<AblatedPart>& parts_;
  const std::vector<int64_t>& positions_;
  Replacement replacement_;
};

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
  if (by_ == AblationBy::mean) learn_means();
  whole_ = without({});
}

void Ablation::learn_means() {
  std::map<ActivationPlace, int64_t> counts;
  for (const auto& batch : references()) {
    for (const auto& [place, x] : record_activations(model_, model_.on_device(batch))) {
      auto rows = x.to(torch::kDouble);  // (B, T, …)
      int64_t count = rows.size(0) * rows.size(1);
      if (const auto lengths = lengths_at(place, batch); lengths.defined()) {
        auto padding = torch::arange(rows.size(1)).unsqueeze(0).ge(lengths.unsqueeze(1)).to(x.device());
        while (padding.dim() < rows.dim()) padding = padding.unsqueeze(-1);
        rows = rows.masked_fill(padding, 0);
        count = lengths.sum().item<int64_t>();
      }
      auto& sum = means_[place];
      sum = sum.defined() ? sum + rows.sum({0, 1}) : rows.sum({0, 1});
      counts[place] += count;
    }
  }
  for (auto& [place, sum] : means_) sum = sum / static_cast<double>(counts[place]);
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
  const auto& all = donors_.at(place);
  const auto lengths = lengths_at(place, references()[donor_of(index)]);
  const int64_t shift = is_own_reference() && batches_.size() == 1 ? 1 : 0;
  const int64_t n_rows = x.size(0), n_donors = all.size(0);
  std::vector<int64_t> rows, columns;
  for (int64_t b = 0; b < n_rows; ++b) {
    const int64_t row = (b + shift) % n_donors;
    const int64_t length = lengths.defined() ? lengths[row].item<int64_t>() : all.size(1);
    for (int64_t t = 0; t < x.size(1); ++t) {
      rows.push_back(row);
      columns.push_back(t % length);
    }
  }
  const auto on_device = [&](const std::vector<int64_t>& list) {
    return torch::tensor(list, torch::kInt64).to(x.device());
  };
  return all.index({on_device(rows), on_device(columns)}).view(x.sizes());
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
  Replacer replacer(parts, positions, [&](const ActivationPlace& place, const torch::Tensor& x) {
    return replacement(place, index, x);
  });
  const ObservationScope scope(model_, replacer);
  return model_.logits(model_.features(model_.on_device(batches_.at(index))));
}

AblationScore Ablation::without(const std::vector<AblatedPart>& parts,
                                const std::vector<int64_t>& positions) {
  for (const auto& part : parts) require_part(part, first_);
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
