#include "data/structures/structure_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "base/error.h"

namespace zoo {
namespace {

using Point = std::array<double, 3>;
using Matrix4 = std::array<std::array<double, 4>, 4>;

struct Motion {
  std::array<Point, 3> rotation = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  Point shift = {};

  Point operator()(const Point& p) const {
    Point moved = shift;
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j) moved[i] += rotation[i][j] * p[j];
    }
    return moved;
  }
};

double square_distance(const Point& a, const Point& b) {
  double sum = 0;
  for (size_t k = 0; k < 3; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

/// The eigenvector of the largest eigenvalue of a symmetric matrix, by Jacobi's rotations.
std::array<double, 4> largest_eigenvector(Matrix4 a) {
  constexpr int most_sweeps = 50;
  constexpr double tolerance = 1e-30;
  Matrix4 vectors{};
  for (size_t i = 0; i < 4; ++i) vectors[i][i] = 1;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    double off = 0, on = 0;
    for (size_t i = 0; i < 4; ++i) {
      on += a[i][i] * a[i][i];
      for (size_t j = i + 1; j < 4; ++j) off += a[i][j] * a[i][j];
    }
    if (off <= tolerance * on) break;
    for (size_t p = 0; p < 4; ++p) {
      for (size_t q = p + 1; q < 4; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = std::copysign(1 / (std::abs(theta) + std::hypot(theta, 1.0)), theta);
        const double c = 1 / std::hypot(t, 1.0), s = t * c;
        for (auto& row : a)
          row = [&] {
            auto turned = row;
            turned[p] = c * row[p] - s * row[q];
            turned[q] = s * row[p] + c * row[q];
            return turned;
          }();
        const auto row_p = a[p], row_q = a[q];
        for (size_t k = 0; k < 4; ++k) {
          a[p][k] = c * row_p[k] - s * row_q[k];
          a[q][k] = s * row_p[k] + c * row_q[k];
        }
        for (auto& row : vectors) {
          const double x = row[p], y = row[q];
          row[p] = c * x - s * y;
          row[q] = s * x + c * y;
        }
      }
    }
  }
  size_t best = 0;
  for (size_t i = 1; i < 4; ++i) {
    if (a[i][i] > a[best][best]) best = i;
  }
  return {vectors[0][best], vectors[1][best], vectors[2][best], vectors[3][best]};
}

/// Points that are paired by their places.
struct Pairs {
  std::vector<Point> moving, fixed;

  Motion best_motion(std::span<const size_t> chosen) const {
    Point from{}, to{};
    const auto n = static_cast<double>(chosen.size());
    for (const size_t i : chosen) {
      for (size_t k = 0; k < 3; ++k) {
        from[k] += moving[i][k] / n;
        to[k] += fixed[i][k] / n;
      }
    }
    std::array<Point, 3> s{};  // sums of products of coordinates
    for (const size_t i : chosen) {
      for (size_t k = 0; k < 3; ++k) {
        for (size_t l = 0; l < 3; ++l) s[k][l] += (moving[i][k] - from[k]) * (fixed[i][l] - to[l]);
      }
    }
    const auto [w, x, y, z] = largest_eigenvector({{
        {s[0][0] + s[1][1] + s[2][2], s[1][2] - s[2][1], s[2][0] - s[0][2], s[0][1] - s[1][0]},
        {s[1][2] - s[2][1], s[0][0] - s[1][1] - s[2][2], s[0][1] + s[1][0], s[2][0] + s[0][2]},
        {s[2][0] - s[0][2], s[0][1] + s[1][0], s[1][1] - s[0][0] - s[2][2], s[1][2] + s[2][1]},
        {s[0][1] - s[1][0], s[2][0] + s[0][2], s[1][2] + s[2][1], s[2][2] - s[0][0] - s[1][1]},
    }});
    Motion motion{.rotation = {{{w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)},
                                {2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)},
                                {2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z}}}};
    const auto turned = motion(from);
    for (size_t k = 0; k < 3; ++k) motion.shift[k] = to[k] - turned[k];
    return motion;
  }

  std::vector<double> square_distances(const Motion& motion) const {
    std::vector<double> distances;
    for (size_t i = 0; i < moving.size(); ++i)
      distances.push_back(square_distance(motion(moving[i]), fixed[i]));
    return distances;
  }
};

torch::Tensor counted(const torch::Tensor& positions, const torch::Tensor& mask) {
  const auto chosen = positions.detach().to(torch::kCPU, torch::kDouble).index({mask.to(torch::kCPU)});
  constexpr double most = 1e6;  // Å; squares of larger ones need not be finite
  if (!chosen.abs().lt(most).all().item<bool>())
    throw DataError("a structure has positions that are no places of atoms, and cannot be compared");
  return chosen.contiguous();
}

std::vector<Point> points_of(const torch::Tensor& positions) {
  const auto* const numbers = positions.const_data_ptr<double>();
  std::vector<Point> points(static_cast<size_t>(positions.size(0)));
  for (size_t i = 0; i < points.size(); ++i) std::copy_n(numbers + 3 * i, 3, points[i].begin());
  return points;
}

Pairs pairs_of(const torch::Tensor& moving, const torch::Tensor& fixed, const torch::Tensor& mask) {
  Pairs pairs{.moving = points_of(counted(moving, mask)), .fixed = points_of(counted(fixed, mask))};
  if (pairs.moving.empty()) throw DataError("the structures have no residue in common");
  return pairs;
}

Superposition superposition_of(const Pairs& pairs, const Motion& motion) {
  const auto distances = pairs.square_distances(motion);
  const double sum = std::accumulate(distances.begin(), distances.end(), 0.0);
  const auto& r = motion.rotation;
  return {.rotation =
              torch::tensor({r[0][0], r[0][1], r[0][2], r[1][0], r[1][1], r[1][2], r[2][0], r[2][1], r[2][2]},
                            torch::kDouble)
                  .view({3, 3}),
          .shift = torch::tensor({motion.shift[0], motion.shift[1], motion.shift[2]}, torch::kDouble),
          .rmsd = std::sqrt(sum / static_cast<double>(distances.size()))};
}

/// The search of the program TM-score.
class MotionSearch {
 public:
  MotionSearch(const Pairs& pairs, int64_t length) : pairs_(pairs), length_(static_cast<double>(length)) {
    constexpr double least_scale = 0.5, least_near = 4.5, most_near = 8;
    scale_ = length > 15 ? std::max(least_scale, 1.24 * std::cbrt(length_ - 15) - 1.8) : least_scale;
    near_ = std::clamp(scale_, least_near, most_near);
  }

  std::pair<double, Motion> best() {
    constexpr size_t least_fragment = 4, most_halvings = 5, most_work = 1'000'000;
    const size_t n = pairs_.moving.size(), step = 1 + n * n / most_work;
    size_t last = 0;
    for (size_t i = 0; i <= most_halvings; ++i) {
      const size_t fragment =
          i == most_halvings ? std::min(n, least_fragment) : std::max(std::min(n, least_fragment), n >> i);
      if (fragment == last) continue;
      last = fragment;
      for (size_t first = 0; first + fragment <= n; first += step) extend(first, fragment);
    }
    return {score_, motion_};
  }

 private:
  void extend(size_t first, size_t fragment) {
    constexpr int most_steps = 20;
    std::vector<size_t> chosen(fragment);
    std::iota(chosen.begin(), chosen.end(), first);
    for (int step = 0; step <= most_steps; ++step) {
      const auto motion = pairs_.best_motion(chosen);
      const auto distances = pairs_.square_distances(motion);
      double score = 0;
      for (const double distance : distances) score += 1 / (1 + distance / (scale_ * scale_));
      score /= length_;
      if (score > score_) {
        score_ = score;
        motion_ = motion;
      }
      auto near = within(distances, step == 0 ? near_ - 1 : near_ + 1);
      if (near == chosen) break;
      chosen = std::move(near);
    }
  }

  /// The residues within a distance, which grows until there are three.
  static std::vector<size_t> within(const std::vector<double>& square_distances, double most) {
    std::vector<size_t> near;
    const size_t wanted = std::min<size_t>(3, square_distances.size());
    for (;; most += 0.5 + most / 8) {  // larger steps where nothing is near
      for (size_t i = 0; i < square_distances.size(); ++i) {
        if (square_distances[i] < most * most) near.push_back(i);
      }
      if (near.size() >= wanted) return near;
      near.clear();
    }
  }

  const Pairs& pairs_;
  double length_, scale_ = 0, near_ = 0, score_ = -1;
  Motion motion_ = {};
};

}  // namespace

torch::Tensor Superposition::operator()(const torch::Tensor& positions) const {
  return positions.to(torch::kCPU, torch::kDouble).matmul(rotation.t()) + shift;
}

Superposition superposition(const torch::Tensor& moving, const torch::Tensor& fixed,
                            const torch::Tensor& mask) {
  const auto pairs = pairs_of(moving, fixed, mask);
  std::vector<size_t> all(pairs.moving.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return superposition_of(pairs, pairs.best_motion(all));
}

TmScore tm_score(const torch::Tensor& predicted, const torch::Tensor& truth, const torch::Tensor& mask,
                 int64_t length) {
  const auto pairs = pairs_of(predicted, truth, mask);
  if (length < std::ssize(pairs.moving))
    throw DataError("the true chain has fewer residues than are compared");
  const auto [score, motion] = MotionSearch(pairs, length).best();
  return {.score = score, .motion = superposition_of(pairs, motion)};
}

Lddt lddt(const torch::Tensor& predicted, const torch::Tensor& truth, const torch::Tensor& mask) {
  constexpr double radius = 15;
  const auto place = mask.to(torch::kCPU);
  const auto said = counted(predicted, place), right = counted(truth, place);
  if (right.size(0) == 0) throw DataError("the structures have no residue in common");
  const auto distances = torch::cdist(right, right, 2, /*compute_mode=*/2);  // 2: without a matrix product
  const auto errors = (torch::cdist(said, said, 2, /*compute_mode=*/2) - distances).abs();
  const auto pairs = distances.lt(radius).fill_diagonal_(false).to(torch::kDouble);
  auto kept = torch::zeros_like(errors);
  for (const double most : {0.5, 1.0, 2.0, 4.0}) kept += errors.lt(most).to(torch::kDouble) / 4;
  kept *= pairs;
  auto residues = torch::full({mask.size(0)}, std::nan(""), torch::kDouble);
  residues.index_put_({place}, kept.sum(1) / pairs.sum(1));  // 0 / 0 is NaN
  return {.score = (kept.sum() / pairs.sum()).item<double>(), .residues = residues};
}

}  // namespace zoo
