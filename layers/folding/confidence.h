#pragma once
// What a model of structures says about its own errors (Jumper et al. 2021, supplement 1.9.6 and 1.9.7), from
// scores of bins of equal width.

#include <torch/types.h>

namespace zoo {

/// The expected lDDT: logits (…, K) of K bins from 0 to 1 → (…).
torch::Tensor expected_lddt(const torch::Tensor& logits);

/// The widest error in Å that has a bin of its own.
inline constexpr double kLargestAlignedError = 31;

/// The expected error in Å of residue j where residue i is aligned: logits (…, L, L, K) → (…, L, L).
torch::Tensor predicted_aligned_error(const torch::Tensor& logits);

/// The expected TM-score of the whole chain, equation 38 to 40: logits (L, L, K) of one chain without padding
/// → a number from 0 to 1.
torch::Tensor predicted_tm_score(const torch::Tensor& logits);

/// The bins of distances between CB atoms in which ESMFold puts a structure in again: (…, L, 14, 3) → (…, L,
/// L) int64, 0 to n_bins - 1. Bins begin at 3.375 Å and end at 21.375 Å; those outside count as the first and
/// the last.
torch::Tensor distance_bins(const torch::Tensor& positions, int64_t n_bins);

}  // namespace zoo
