#pragma once
// The cost of sums over the past (layers/). FLOPs count matrix products. A chunk that is filled up
// counts in full.

#include <algorithm>

#include "layers/running_sums.h"
#include "models/mixers/mixers.h"

namespace zoo {

/// The chunks in which T tokens of a row are computed (layers/running_sums.h).
struct Chunks {
  explicit Chunks(int64_t n_tokens)
      : length(std::clamp<int64_t>(n_tokens, 1, kChunkLength)), count((n_tokens + length - 1) / length) {}

  int64_t length, count;

  double tokens() const { return static_cast<double>(length * count); }
};

/// Multiply-adds of the sums over tokens for one row, and the float32 numbers that they keep for the backward
/// pass for each token.
struct FeatureCost {
  double products = 0;
  double kept = 0;
};
enum class Normalisation { one_sum, sum_of_its_own };
/// `m` features a head over `n_tokens`. `below`: whether what stands below the fraction line has the same
/// features as what stands above it, or needs a sum of its own, as with rotary positions.
FeatureCost feature_cost(const HeadSizes& sizes, int64_t m, const MixerPlace& place, Normalisation below,
                         int64_t n_tokens);

}  // namespace zoo
