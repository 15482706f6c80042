#include "layers/folding/structure_losses.h"

#include <array>

namespace zoo {
namespace {

/// The distances (B, L, L) of points (B, L, 3); those of equal points have a gradient, too.
torch::Tensor distances(const torch::Tensor& points) {
  constexpr double least_square = 1e-6;
  return ((points.unsqueeze(2) - points.unsqueeze(1)).square().sum(-1) + least_square).sqrt();
}

/// Means over all but the first dimension of what counts.
torch::Tensor mean_of_counted(const torch::Tensor& values, const torch::Tensor& counted) {
  return (values * counted).flatten(1).sum(1) / counted.flatten(1).sum(1).clamp_min(1);
}

constexpr auto kLddtLimits = std::to_array<double>({0.5, 1, 2, 4});  // Å

/// Of all pairs of residues: how wrong their distance is, and whether it counts for lDDT. (B, L, L) each.
struct DistanceErrors {
  torch::Tensor error, counted;
};
DistanceErrors errors_of_distances(const torch::Tensor& predicted, const torch::Tensor& truth,
                                   const torch::Tensor& mask) {
  constexpr double radius = 15;
  const auto right = distances(truth);
  auto counted = mask.unsqueeze(2) * mask.unsqueeze(1) * (right < radius);
  counted.diagonal(0, 1, 2).zero_();
  return {.error = (distances(predicted) - right).abs(), .counted = counted};
}

}  // namespace

torch::Tensor points_in_frames(const Rigid& frames, const torch::Tensor& points) {
  // Rᵀ x of a column is x R of a row.
  return (points.unsqueeze(1) - frames.translation.unsqueeze(2)).matmul(frames.rotation);
}

torch::Tensor frame_aligned_error(const torch::Tensor& predicted, const torch::Tensor& truth,
                                  const FramesAndPoints& counted, double clamp) {
  constexpr double least_square = 1e-4, unit = 10;
  const auto distance = ((predicted - truth).square().sum(-1) + least_square).sqrt().clamp_max(clamp);
  const auto pairs = counted.frames.unsqueeze(2) * counted.points.unsqueeze(1);
  return mean_of_counted(distance, pairs) / unit;
}

torch::Tensor smooth_lddt_loss(const torch::Tensor& predicted, const torch::Tensor& truth,
                               const torch::Tensor& mask) {
  const auto [error, counted] = errors_of_distances(predicted, truth, mask);
  auto kept = torch::zeros_like(error);
  for (const double limit : kLddtLimits) kept = kept + torch::sigmoid(limit - error) / kLddtLimits.size();
  return mean_of_counted(1 - kept, counted);
}

torch::Tensor residue_lddt(const torch::Tensor& predicted, const torch::Tensor& truth,
                           const torch::Tensor& mask) {
  const auto [error, counted] = errors_of_distances(predicted, truth, mask);
  auto kept = torch::zeros_like(error);
  for (const double limit : kLddtLimits) kept = kept + (error < limit).to(error.scalar_type());
  return (kept * counted).sum(2) / (counted.sum(2).clamp_min(1) * kLddtLimits.size());
}

torch::Tensor aligned_onto(const torch::Tensor& moving, const torch::Tensor& fixed,
                           const torch::Tensor& mask) {
  const torch::NoGradGuard no_grad;
  const auto weights = mask.to(torch::kDouble).unsqueeze(-1);
  const auto n = weights.sum(1, true).clamp_min(1);
  const auto from = moving.to(torch::kDouble).nan_to_num(0, 0, 0),
             to = fixed.to(torch::kDouble).nan_to_num(0, 0, 0);
  const auto from_centre = (from * weights).sum(1, true) / n, to_centre = (to * weights).sum(1, true) / n;
  const auto product = ((from - from_centre) * weights).transpose(1, 2).matmul(to - to_centre);
  const auto [u, s, vh] = at::linalg_svd(product);
  // The last axis is turned over where the best map is a reflection.
  auto signs = torch::ones_like(s);
  signs.select(1, 2).copy_(at::linalg_det(u.matmul(vh)));
  const auto rotation = (u * signs.unsqueeze(1)).matmul(vh);  // of rows
  return ((from - from_centre).matmul(rotation) + to_centre).to(moving.scalar_type());
}

}  // namespace zoo
