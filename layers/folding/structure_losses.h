#pragma once
// How far predicted structures are from the true ones, as losses.

#include <torch/types.h>

#include "layers/folding/rigid.h"

namespace zoo {

/// Points as each frame of a chain sees them: frames (B, L), points (B, N, 3) → (B, L, N, 3).
torch::Tensor points_in_frames(const Rigid& frames, const torch::Tensor& points);

/// The frames and points of a batch of chains that count.
struct FramesAndPoints {
  torch::Tensor frames;  // (B, L) float, 0 or 1
  torch::Tensor points;  // (B, N) float, 0 or 1
};

/// The frame aligned point error of each chain (Jumper et al. 2021, algorithm 28): (B), the mean over frames
/// and points of the distance between a point of the prediction and one of the truth, as the same frame sees
/// them, in units of 10 Å. predicted, truth: (B, L, N, 3) in Å, from points_in_frames(). `clamp`: a distance
/// above so many Å counts as that. A chain of which nothing counts has the error 0.
torch::Tensor frame_aligned_error(const torch::Tensor& predicted, const torch::Tensor& truth,
                                  const FramesAndPoints& counted, double clamp = 10);

/// 1 - the lDDT of each chain, with sigmoids in place of its steps (Abramson et al. 2024, supplement,
/// algorithm 27): (B). predicted, truth: (B, L, 3) in Å; mask: (B, L) float, 0 or 1. True distances below 15
/// Å count. A chain without any has the loss 0.
torch::Tensor smooth_lddt_loss(const torch::Tensor& predicted, const torch::Tensor& truth,
                               const torch::Tensor& mask);

/// The lDDT of each residue (Mariani et al. 2013), over its pairs: (B, L), from 0 to 1, and 0 for a residue
/// without a true distance below 15 Å. The arguments are as above.
torch::Tensor residue_lddt(const torch::Tensor& predicted, const torch::Tensor& truth,
                           const torch::Tensor& mask);

/// The points `moving` of each chain, turned and shifted so that they have the least squared distance from
/// `fixed` (Kabsch 1976): (B, N, 3), without gradients. mask: (B, N) float, 0 or 1. Points that are no
/// numbers count as zeros.
torch::Tensor aligned_onto(const torch::Tensor& moving, const torch::Tensor& fixed,
                           const torch::Tensor& mask);

}  // namespace zoo
