// The losses of structures, and the frames that they are made of.

#include "layers/folding/structure_losses.h"

#include <cmath>

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "layers/folding/rigid.h"

namespace zoo {
namespace {

/// (B, L, 3, 3)
torch::Tensor random_rotations(at::IntArrayRef sizes) {
  auto all = sizes.vec();
  all.push_back(4);
  const auto q = torch::randn(all, torch::kDouble);
  return rotations_of(q / q.norm(2, -1, true));
}

struct Chains {
  torch::Tensor rotations, translations, points;

  static Chains random(int64_t B, int64_t L, int64_t N) {
    return {random_rotations({B, L}), 5 * torch::randn({B, L, 3}, torch::kDouble),
            5 * torch::randn({B, N, 3}, torch::kDouble)};
  }
  torch::Tensor seen() const {
    return points_in_frames({.rotation = rotations, .translation = translations}, points);
  }
};

/// Algorithm 28, line by line.
torch::Tensor written_out_error(const Chains& predicted, const Chains& truth, const FramesAndPoints& counted,
                                int64_t b, double clamp) {
  auto sum = torch::zeros({}, torch::kDouble);
  double n = 0;
  for (int64_t i = 0; i < predicted.translations.size(1); ++i) {
    for (int64_t j = 0; j < predicted.points.size(1); ++j) {
      if (counted.frames[b][i].item<double>() * counted.points[b][j].item<double>() == 0) continue;
      const auto place = [&](const Chains& chains) {
        return chains.rotations[b][i].t().mv(chains.points[b][j] - chains.translations[b][i]);
      };
      const auto distance = ((place(predicted) - place(truth)).square().sum() + 1e-4).sqrt();
      if (distance.item<double>() < clamp) {
        sum = sum + distance / 10;
      } else {
        sum = sum + clamp / 10;
      }
      ++n;
    }
  }
  return sum / n;
}

TEST(FrameAlignedError, EqualsTheWrittenOutLoopAndItsGradients) {
  torch::manual_seed(1);
  constexpr int64_t B = 2, L = 4, N = 5;
  const auto truth = Chains::random(B, L, N);
  auto predicted = Chains::random(B, L, N);
  const FramesAndPoints counted{.frames = torch::tensor({{1, 1, 0, 1}, {0, 1, 1, 1}}, torch::kDouble),
                                .points = torch::tensor({{1, 0, 1, 1, 1}, {1, 1, 1, 1, 0}}, torch::kDouble)};
  for (auto* const tensor : {&predicted.rotations, &predicted.translations, &predicted.points})
    tensor->requires_grad_(true);
  const std::vector<torch::Tensor> leaves{predicted.rotations, predicted.translations, predicted.points};
  const auto errors = frame_aligned_error(predicted.seen(), truth.seen(), counted, 9);
  ASSERT_EQ(errors.sizes(), at::IntArrayRef({B}));
  for (int64_t b = 0; b < B; ++b) {
    const auto expected = written_out_error(predicted, truth, counted, b, 9);
    EXPECT_NEAR(errors[b].item<double>(), expected.item<double>(), 1e-12);
    EXPECT_LT(expected.item<double>(), 0.9) << "some distances are not clamped";
    const auto gradients = torch::autograd::grad({errors[b]}, leaves, {}, /*retain_graph=*/true);
    const auto wanted = torch::autograd::grad({expected}, leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      EXPECT_TRUE(torch::allclose(gradients[i], wanted[i], 0, 1e-12)) << i;
      EXPECT_GT(wanted[i].abs().max().item<double>(), 0);
    }
  }
}

TEST(FrameAlignedError, DoesNotChangeWithTheWholeButWithAMirror) {
  torch::manual_seed(2);
  const auto truth = Chains::random(1, 6, 6);
  const FramesAndPoints all{.frames = torch::ones({1, 6}, torch::kDouble),
                            .points = torch::ones({1, 6}, torch::kDouble)};
  const auto turn = random_rotations({1, 1});
  const Chains moved{turn.matmul(truth.rotations), truth.translations.matmul(turn[0][0].t()) + 7,
                     truth.points.matmul(turn[0][0].t()) + 7};
  constexpr double nothing = 1e-3;  // √1e-4 / 10
  EXPECT_NEAR(frame_aligned_error(moved.seen(), truth.seen(), all).item<double>(), nothing, 1e-9);
  const auto mirror = torch::diag(torch::tensor({1, 1, -1}, torch::kDouble));
  const Chains mirrored{mirror.matmul(truth.rotations).matmul(mirror), truth.translations.matmul(mirror),
                        truth.points.matmul(mirror)};
  EXPECT_GT(frame_aligned_error(mirrored.seen(), truth.seen(), all).item<double>(), 0.1);
}

TEST(BackboneFrames, AreOrthogonalAndSeeTheirAtoms) {
  torch::manual_seed(3);
  const auto n = torch::randn({7, 3}, torch::kDouble), ca = torch::randn({7, 3}, torch::kDouble),
             c = torch::randn({7, 3}, torch::kDouble);
  const auto frames = frames_of_backbone(n, ca, c);
  const auto eye = torch::eye(3, torch::kDouble).expand({7, 3, 3});
  EXPECT_TRUE(torch::allclose(frames.rotation.matmul(frames.rotation.transpose(1, 2)), eye, 0, 1e-9));
  EXPECT_TRUE(torch::allclose(at::linalg_det(frames.rotation), torch::ones({7}, torch::kDouble)));
  const auto seen_c = frames.apply_inverse(c), seen_n = frames.apply_inverse(n);
  EXPECT_TRUE(torch::allclose(seen_c.select(1, 0), (c - ca).norm(2, -1)));
  EXPECT_LT(seen_c.narrow(1, 1, 2).abs().max().item<double>(), 1e-9);
  EXPECT_LT(seen_n.select(1, 2).abs().max().item<double>(), 1e-9);
  EXPECT_GT(seen_n.select(1, 1).min().item<double>(), 0);
  EXPECT_LT(frames.apply_inverse(ca).abs().max().item<double>(), 1e-9);
}

TEST(SmoothLddt, CountsTrueNeighboursAlone) {
  torch::manual_seed(4);
  const auto truth = 8 * torch::randn({2, 9, 3}, torch::kDouble);
  auto mask = torch::ones({2, 9}, torch::kDouble);
  mask[1].narrow(0, 6, 3).zero_();
  double kept = 0;  // of a perfect prediction
  for (const double limit : {0.5, 1.0, 2.0, 4.0}) kept += 1 / (1 + std::exp(-limit)) / 4;
  const auto loss = [&](const torch::Tensor& predicted) { return smooth_lddt_loss(predicted, truth, mask); };
  for (int64_t b = 0; b < 2; ++b) EXPECT_NEAR(loss(truth)[b].item<double>(), 1 - kept, 1e-6);
  const auto turn = random_rotations({1});
  EXPECT_TRUE(torch::allclose(loss(truth.matmul(turn[0]) + 3), loss(truth), 0, 1e-6));
  auto padded = truth.clone();
  padded[1].narrow(0, 6, 3).add_(100);
  EXPECT_TRUE(torch::allclose(loss(padded), loss(truth), 0, 1e-9)) << "padding does not count";
  EXPECT_GT(loss(3 * truth)[0].item<double>(), 0.7);
  EXPECT_EQ(smooth_lddt_loss(truth, 1e3 * truth, mask).sum().item<double>(), 0) << "no true neighbours";
  auto same = torch::zeros({1, 3, 3}, torch::kDouble).requires_grad_(true);
  smooth_lddt_loss(same, truth.narrow(0, 0, 1).narrow(1, 0, 3), torch::ones({1, 3})).sum().backward();
  EXPECT_TRUE(same.grad().isfinite().all().item<bool>());
}

TEST(AlignedOnto, FindsTheMotionAndNoMirror) {
  torch::manual_seed(5);
  const auto fixed = torch::randn({3, 8, 3}, torch::kDouble);
  const auto mask = torch::ones({3, 8}, torch::kDouble);
  const auto moved = fixed.matmul(random_rotations({3})) + 4;
  EXPECT_TRUE(torch::allclose(aligned_onto(moved, fixed, mask), fixed, 0, 1e-9));
  const auto mirrored = fixed * torch::tensor({1, 1, -1}, torch::kDouble);
  const auto laid = aligned_onto(mirrored, fixed, mask);
  EXPECT_GT((laid - fixed).norm(2, -1).mean().item<double>(), 0.1);
  // A motion keeps what a mirror turns over.
  const auto handedness = [](const torch::Tensor& x) {
    return at::linalg_det(x.narrow(1, 1, 3) - x.narrow(1, 0, 1)).sign();
  };
  EXPECT_TRUE(torch::equal(handedness(laid), handedness(mirrored)));
  // Hidden points move along and do not count.
  auto some = mask.clone();
  some.narrow(1, 5, 3).zero_();
  auto wrong = moved.clone();
  wrong.narrow(1, 5, 3).add_(50);
  EXPECT_TRUE(
      torch::allclose(aligned_onto(wrong, fixed, some).narrow(1, 0, 5), fixed.narrow(1, 0, 5), 0, 1e-9));
  EXPECT_TRUE(aligned_onto(torch::full({1, 4, 3}, NAN), torch::ones({1, 4, 3}), torch::ones({1, 4}))
                  .isfinite()
                  .all()
                  .item<bool>());
}

}  // namespace
}  // namespace zoo
