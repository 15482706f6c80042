#include "analysis/causes/standing_ablation.h"

#include <algorithm>
#include <utility>

#include <c10/util/Exception.h>

#include "base/error.h"
#include "models/inference_scope.h"

namespace zoo {

StandingAblation::StandingAblation(Model& model, std::vector<AblatedPart> parts, AblationBy by,
                                   std::vector<int64_t> positions, const std::vector<Batch>& references)
    : parts_(std::move(parts)),
      by_(by),
      positions_(std::move(positions)),
      replacer_(parts_, positions_, [this](const ActivationPlace& place, const torch::Tensor& x) {
        return replacement(place, x);
      }) {
  learn(model, references);
  scope_.emplace(model, replacer_);
}

void StandingAblation::learn(Model& model, const std::vector<Batch>& references) {
  TORCH_CHECK(!references.empty(), "an ablation needs a reference batch");
  const auto first = record_activations(model, model.on_device(references.front()));
  for (const auto& part : parts_) require_part(part, first);
  const WantedPlaces wanted = [&](const ActivationPlace& place) {
    return std::ranges::find(parts_, place, &AblatedPart::place) != parts_.end();
  };
  if (by_ == AblationBy::mean) means_ = mean_activations(model, references, wanted);
  if (by_ != AblationBy::resample) return;
  if (references.size() == 1 && references.front().n_rows() == 1)
    throw UsageError("activations of another text are needed, and there is one text: choose mean");
  for (const auto& batch : references) {
    auto& others = others_.emplace_back();
    for (auto& [place, x] : record_activations(model, model.on_device(batch), wanted))
      others[place] = {.x = x, .lengths = lengths_at(place, batch)};
  }
}

torch::Tensor StandingAblation::replacement(const ActivationPlace& place, const torch::Tensor& x) {
  switch (by_) {
    case AblationBy::zero:
      return torch::zeros_like(x);
    case AblationBy::mean:
      return means_.at(place).to(x.scalar_type());
    case AblationBy::resample:
      break;
  }
  const size_t pass = n_passes_[place]++;
  const auto& [others, lengths] = others_[(pass + 1) % others_.size()].at(place);
  return activations_of_others(x, others, lengths, others_.size() == 1 ? 1 : 0);
}

}  // namespace zoo
