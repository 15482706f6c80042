#pragma once
// An ablation says what a model loses without a part of it. It replaces activations by zeros, by their mean,
// or by those of another text, and measures the loss again (Michel et al. 2019, who remove heads; Wang et al.
// 2023 for means and other texts).

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "analysis/causes/recorder.h"
#include "data/labels.h"
#include "models/model.h"

namespace zoo {

/// What stands in the place of an activation.
///   zero      zeros
///   mean      the mean over the tokens of all rows of the reference batches
///   resample  that of another row, at the same position; a shorter row begins again at its end. Without
///             reference batches, row b of batch i gets row b of batch i + 1, and if there is one batch, row
///             b + 1; with them, row b of reference batch i.
enum class AblationBy { zero, mean, resample };
constexpr auto config_names(AblationBy) {
  return std::to_array<std::string_view>({"zero", "mean", "resample"});
}

/// A part of a model: a place, or one head of a place of heads.
struct AblatedPart {
  ActivationPlace place = {};
  std::optional<int64_t> head = {};

  /// "layers.3.attention.heads.2", "layers.3.feed_forward"
  std::string name() const;
};
/// The part of such a name; "3.2" and "encoder.3.2" are short for heads of self-attention, "cross.3.2" for
/// one of cross-attention. Throws UsageError for another name.
AblatedPart ablated_part(std::string_view name);

/// Every head of every layer, and every sub-layer, that the activations show.
std::vector<AblatedPart> all_parts(const Activations& activations);
/// Throws UsageError if the activations have no such part.
void require_part(const AblatedPart& part, const Activations& activations);

/// What a model says of some batches.
struct AblationScore {
  double nats = 0;
  int64_t targets = 0;
  int64_t right = 0;  // predictions that are the target; of targets that are classes
  double loss() const { return nats / static_cast<double>(targets); }
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(targets); }
};

/// Replaces parts in the passes of a model over batches.
class Ablation {
 public:
  /// `batches`: on the CPU, with targets. What stands in place of activations comes from `references`; empty:
  /// from the batches themselves. Throws UsageError for resampling one row from itself.
  Ablation(Model& model, std::vector<Batch> batches, AblationBy by, std::vector<Batch> references = {},
           Problem problem = Problem::single_label);

  /// The score without any change.
  const AblationScore& whole() const { return whole_; }
  /// The score with all these parts replaced, at these positions of each row; empty: at all. Throws
  /// UsageError for a part that the model has not, and for a position that no row has.
  AblationScore without(const std::vector<AblatedPart>& parts, const std::vector<int64_t>& positions = {});
  /// The logits (N, V) of batch `index` then.
  torch::Tensor logits(size_t index, const std::vector<AblatedPart>& parts,
                       const std::vector<int64_t>& positions = {});
  /// The activations of the first batch, unchanged.
  const Activations& first_activations() const { return first_; }

 private:
  bool is_own_reference() const { return references_.empty(); }
  const std::vector<Batch>& references() const { return is_own_reference() ? batches_ : references_; }
  size_t donor_of(size_t index) const;
  void require_positions(const ActivationPlace& place, const std::vector<int64_t>& positions) const;
  torch::Tensor replacement(const ActivationPlace& place, size_t index, const torch::Tensor& x);

  Model& model_;
  std::vector<Batch> batches_, references_;
  AblationBy by_;
  Problem problem_;
  AblationScore whole_;
  Activations first_;
  std::map<ActivationPlace, torch::Tensor> means_;
  std::optional<size_t> donor_index_;  // the batch whose activations are in donors_
  Activations donors_;
};

}  // namespace zoo
