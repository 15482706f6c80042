#include "layers/folding/rigid.h"

#include <utility>

namespace zoo {

torch::Tensor Rigid::apply(const torch::Tensor& points) const {
  return rotation.matmul(points.unsqueeze(-1)).squeeze(-1) + translation;
}

torch::Tensor Rigid::apply_inverse(const torch::Tensor& points) const {
  return rotation.transpose(-1, -2).matmul((points - translation).unsqueeze(-1)).squeeze(-1);
}

Rigid Rigid::compose(const Rigid& inner) const {
  return {.rotation = rotation.matmul(inner.rotation), .translation = apply(inner.translation)};
}

Rigid Rigid::unsqueeze_last() const {
  return {.rotation = rotation.unsqueeze(-3), .translation = translation.unsqueeze(-2)};
}

Rigid Rigid::select_last(int64_t index) const {
  return {.rotation = rotation.select(-3, index), .translation = translation.select(-2, index)};
}

torch::Tensor Rigid::matrices() const {
  const auto upper = torch::cat({rotation, translation.unsqueeze(-1)}, -1);
  auto sizes = upper.sizes().vec();
  sizes[sizes.size() - 2] = 1;
  auto last = torch::zeros(sizes, upper.options());
  last.select(-1, 3).fill_(1);
  return torch::cat({upper, last}, -2);
}

Rigid frames_of_backbone(const torch::Tensor& n, const torch::Tensor& ca, const torch::Tensor& c) {
  constexpr double least_length = 1e-8;
  const auto unit = [](const torch::Tensor& v) {
    return v / v.square().sum(-1, true).clamp_min(least_length).sqrt();
  };
  const auto x = unit(c - ca), to_n = n - ca;
  const auto y = unit(to_n - x * (x * to_n).sum(-1, true));
  return {.rotation = torch::stack({x, y, torch::cross(x, y, -1)}, -1), .translation = ca};
}

torch::Tensor rotations_of(const torch::Tensor& quaternions) {
  const auto q = quaternions.unbind(-1);
  const auto &a = q[0], &b = q[1], &c = q[2], &d = q[3];
  const auto rotation =
      torch::stack({a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c),
                    2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b),
                    2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d},
                   -1);
  return rotation.unflatten(-1, {3, 3});
}

BackboneFrames BackboneFrames::at_origin(int64_t n_rows, int64_t length, const torch::Tensor& like) {
  auto quaternions = torch::zeros({n_rows, length, 4}, like.options().requires_grad(false));
  quaternions.select(-1, 0).fill_(1);
  return {quaternions, torch::zeros({n_rows, length, 3}, quaternions.options())};
}

BackboneFrames BackboneFrames::moved(const torch::Tensor& step) const {
  const auto q = quaternions_.unbind(-1), v = step.narrow(-1, 0, 3).unbind(-1);
  const auto &a = q[0], &b = q[1], &c = q[2], &d = q[3], &x = v[0], &y = v[1], &z = v[2];
  // q (1, x, y, z) as a product of quaternions.
  const auto turned = torch::stack({a - b * x - c * y - d * z, b + a * x + c * z - d * y,
                                    c + a * y + d * x - b * z, d + a * z + b * y - c * x},
                                   -1);
  return {turned / turned.square().sum(-1, true).sqrt(), rigid().apply(step.narrow(-1, 3, 3))};
}

BackboneFrames BackboneFrames::without_rotation_gradient() const {
  return {quaternions_.detach(), translations_};
}

Rigid BackboneFrames::rigid() const { return scaled(1); }

Rigid BackboneFrames::scaled(double factor) const {
  return {.rotation = rotations_of(quaternions_), .translation = translations_ * factor};
}

torch::Tensor BackboneFrames::numbers(double factor) const {
  return torch::cat({quaternions_, translations_ * factor}, -1);
}

}  // namespace zoo
