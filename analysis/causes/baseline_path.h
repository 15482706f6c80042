#pragma once
// The straight way from an input without content to the input of a question.

#include <array>
#include <map>
#include <span>
#include <string_view>

#include <torch/types.h>

#include "models/model.h"
#include "models/observation_scope.h"

namespace zoo {

/// The input without content. For texts: zero vectors, the mean of all token vectors, or the vector of the
/// token <pad> or <mask> at every place. For pictures: zeros after normalisation, which is the mean colour of
/// the data, or the mean colour of the picture; they have no pad and mask.
enum class AttributionBaseline { zero, mean, pad, mask };
constexpr auto config_names(AttributionBaseline) {
  return std::to_array<std::string_view>({"zero", "mean", "pad", "mask"});
}

/// Where gradients are taken: the vectors of the tokens that a side reads, (N, T, E), or the pixels of a
/// picture (StackSide::only), (N, C, H, W).
using GradientInputs = std::map<StackSide, torch::Tensor>;

class BaselinePath {
 public:
  /// `batch` has one row without padding, and is on the model's device; `token` is that of pad and mask.
  /// Throws UsageError for a model that reads neither tokens nor pictures, and for baselines that pictures
  /// have not.
  BaselinePath(Model& model, Batch batch, AttributionBaseline baseline, int64_t token);

  /// Rows of inputs at some points of the way: 0 is the baseline, 1 the input.
  GradientInputs at(std::span<const double> points) const;
  /// (N, V): the outputs at a place, of rows of inputs.
  torch::Tensor logits(const GradientInputs& inputs, int64_t place) const;

  const GradientInputs& input() const { return input_; }
  /// The input less the baseline.
  torch::Tensor difference(StackSide side) const { return input_.at(side) - baseline_.at(side); }
  bool is_picture() const { return is_picture_; }

 private:
  torch::Tensor baseline_of(StackSide side, const torch::Tensor& input, AttributionBaseline baseline,
                            int64_t token) const;

  Model& model_;
  Batch batch_;
  bool is_picture_;
  TokenEmbedders embedders_;
  GradientInputs input_, baseline_;
};

}  // namespace zoo
