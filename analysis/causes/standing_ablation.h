#pragma once
// An ablation that stands while a model is evaluated by whatever evaluates it.

#include <map>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "analysis/causes/ablation.h"
#include "analysis/causes/part_replacement.h"
#include "models/observation_scope.h"

namespace zoo {

/// While this object lives, every pass of a model has parts replaced. Zeros and means are those of Ablation.
/// To resample, pass i gets activations of reference batch i + 1, beginning again at the first: row b that of
/// its row b, at the same position; of a single reference batch, row b + 1. An evaluation that reads the
/// reference batches in their order thus never gives a row its own activation.
class StandingAblation {
 public:
  /// `references`: on the CPU; at least one, and to resample two rows. Throws UsageError for a part that the
  /// model lacks, or a model that has no named activations.
  StandingAblation(Model& model, std::vector<AblatedPart> parts, AblationBy by,
                   std::vector<int64_t> positions, const std::vector<Batch>& references);

 private:
  void learn(Model& model, const std::vector<Batch>& references);
  torch::Tensor replacement(const ActivationPlace& place, const torch::Tensor& x);

  std::vector<AblatedPart> parts_;
  AblationBy by_;
  std::vector<int64_t> positions_;
  std::map<ActivationPlace, torch::Tensor> means_;
  struct Others {
    torch::Tensor x, lengths;
  };
  std::vector<std::map<ActivationPlace, Others>> others_;  // of each reference batch
  std::map<ActivationPlace, size_t> n_passes_;
  PartReplacer replacer_;
  std::optional<ObservationScope> scope_;  // once everything is learnt
};

}  // namespace zoo
