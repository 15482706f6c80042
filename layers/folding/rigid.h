#pragma once
// Rigid motions of points, x ↦ R x + t, and the frames of a backbone (Jumper et al. 2021, supplement 1.8.1).
// They are plain tensors, computed in the type that they have.

#include <torch/types.h>

namespace zoo {

/// One motion for each of the leading dimensions.
struct Rigid {
  torch::Tensor rotation;     // (…, 3, 3)
  torch::Tensor translation;  // (…, 3)

  /// points: (…, 3), whose other dimensions are those of the motions, or broadcast with them.
  torch::Tensor apply(const torch::Tensor& points) const;
  /// The motion that leads back: Rᵀ (x - t).
  torch::Tensor apply_inverse(const torch::Tensor& points) const;
  /// First `inner`, then this.
  Rigid compose(const Rigid& inner) const;
  /// The same with one more leading dimension, the last one, of size 1.
  Rigid unsqueeze_last() const;
  /// The motions at `index` of the last leading dimension.
  Rigid select_last(int64_t index) const;
  /// (…, 4, 4): rotation and translation above a row 0, 0, 0, 1.
  torch::Tensor matrices() const;
};

/// Frames whose rotations are unit quaternions.
class BackboneFrames {
 public:
  /// Frames (B, L) at the origin, of the type and on the device of `like`.
  static BackboneFrames at_origin(int64_t n_rows, int64_t length, const torch::Tensor& like);

  /// Algorithm 23 without its linear map. step: (B, L, 6), three numbers of a quaternion (1, b, c, d) and a
  /// translation in the present frame.
  BackboneFrames moved(const torch::Tensor& step) const;
  /// The same frames; no gradient passes through their rotations. Line 20 of algorithm 20.
  BackboneFrames without_rotation_gradient() const;
  Rigid rigid() const;
  /// With translations times `factor`.
  Rigid scaled(double factor) const;
  /// (B, L, 7): quaternions and translations times `factor`.
  torch::Tensor numbers(double factor) const;

 private:
  BackboneFrames(torch::Tensor quaternions, torch::Tensor translations)
      : quaternions_(std::move(quaternions)), translations_(std::move(translations)) {}

  torch::Tensor quaternions_;   // (B, L, 4)
  torch::Tensor translations_;  // (B, L, 3)
};

/// The frames of residues (algorithm 21) from the places (…, 3) of N, CA and C: CA is the origin, C lies on
/// the x axis, and N in the plane of x and y. Atoms at one place give a frame of zeros.
Rigid frames_of_backbone(const torch::Tensor& n, const torch::Tensor& ca, const torch::Tensor& c);

/// Unit quaternions a + bi + cj + dk, (…, 4) → rotations (…, 3, 3).
torch::Tensor rotations_of(const torch::Tensor& quaternions);

}  // namespace zoo
