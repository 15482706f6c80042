#pragma once
// The interface of models that compare pictures with texts.

#include <array>
#include <string_view>

#include <torch/types.h>

#include "models/model.h"

namespace zoo {

/// What the scores of pictures and texts mean.
///   softmax  scores of the texts for a picture, of which one fits, and of the pictures for a text (CLIP,
///            Radford et al. 2021)
///   sigmoid  for each picture and each text whether both fit (SigLIP, Zhai et al. 2023)
enum class PairScores { softmax, sigmoid };
constexpr auto config_names(PairScores) { return std::to_array<std::string_view>({"softmax", "sigmoid"}); }

/// A model with vectors of pictures and of texts in one space.
class ComparingModel {
 public:
  virtual ~ComparingModel() = default;
  /// (B, W): of the pictures in the field kImages; of the texts in batch.input. Their norms are not 1.
  virtual torch::Tensor image_vectors(const Batch& batch) = 0;
  virtual torch::Tensor text_vectors(const Batch& batch) = 0;
  /// (I, W) and (J, W) → (I, J): cosines of both, times a learned factor, plus a learned number if
  /// pair_scores() is sigmoid.
  virtual torch::Tensor scores(const torch::Tensor& images, const torch::Tensor& texts) = 0;
  virtual PairScores pair_scores() const = 0;
};

/// A model's interface for comparing pictures with texts, or null if it does not compare them.
inline ComparingModel* comparing_of(Model& model) { return dynamic_cast<ComparingModel*>(&model); }
inline const ComparingModel* comparing_of(const Model& model) {
  return dynamic_cast<const ComparingModel*>(&model);
}

}  // namespace zoo
