#pragma once
// Features of a recording that training hides at random, as in wav2vec 2.0 (Baevski et al. 2020, appendix A;
// SpecAugment, Park et al. 2019): spans of moments become a learned vector, spans of numbers become zeros.

#include <cstdint>

#include <torch/types.h>

#include "base/random.h"
#include "io/config/describe.h"

namespace zoo {

struct FeatureMasks {
  bool active = true;  // false: training hides nothing, although the model has the vector
  /// p, l: about p·T/l spans of l moments each are hidden. Spans may overlap, so p is the most.
  double time_share = 0.05;
  int64_t time_length = 10, least_time_masks = 2;
  /// The same of the D numbers of all moments of a recording.
  double feature_share = 0;
  int64_t feature_length = 10, least_feature_masks = 0;
};
void describe(ConfigVisitor& v, FeatureMasks& c);

/// x (B, T, D) with hidden spans in each row, as transformers' _compute_mask_indices() draws them, but with
/// random numbers that depend on the row alone. A span is not hidden in a row that is shorter than it.
///   lengths  (B) int64: the moments of each row; undefined = all T
///   vector   (D): what stands in place of hidden moments
torch::Tensor with_hidden_features(const torch::Tensor& x, const torch::Tensor& lengths,
                                   const torch::Tensor& vector, const FeatureMasks& masks,
                                   const RowSeed& seed);

}  // namespace zoo
