#pragma once
// What stands in the place of the activations that an ablation takes away.

#include <functional>
#include <map>
#include <vector>

#include <torch/types.h>

#include "analysis/causes/ablation.h"

namespace zoo {

/// Replaces parts in the passes of a model by what a function gives for the place and its activation.
class PartReplacer final : public ActivationObserver {
 public:
  using Replacement = std::function<torch::Tensor(const ActivationPlace&, const torch::Tensor&)>;
  /// At these positions of each row; empty: at all. `parts` and `positions` must outlive it.
  PartReplacer(const std::vector<AblatedPart>& parts, const std::vector<int64_t>& positions,
               Replacement replacement);
  torch::Tensor on(const ActivationPlace& place, const torch::Tensor& x) override;

 private:
  const std::vector<AblatedPart>& parts_;
  const std::vector<int64_t>& positions_;
  Replacement replacement_;
};

/// The lengths of the rows at a place, on the CPU; undefined: all are full.
torch::Tensor lengths_at(const ActivationPlace& place, const Batch& batch);

/// The mean of each activation over the tokens of all rows, in float64. Batches are on the CPU.
std::map<ActivationPlace, torch::Tensor> mean_activations(
    Model& model, const std::vector<Batch>& batches,
    const WantedPlaces& wanted = [](const ActivationPlace&) { return true; });

/// Activations of other rows in the shape of x (B, T, …): row b gets row b + `shift` of `others`, which
/// begins again at its end, as the rows do. `lengths`: of the rows of `others`, as lengths_at().
torch::Tensor activations_of_others(const torch::Tensor& x, const torch::Tensor& others,
                                    const torch::Tensor& lengths, int64_t shift);

}  // namespace zoo
