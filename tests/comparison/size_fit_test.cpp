#include "comparison/findings/size_fit.h"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zoo {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const Metric kFitted{.key = "loss", .label = "loss"};

/// The state of a training that took these FLOPs.
TrainingState after(double flops) {
  TrainingState state;
  state.flops = flops;
  return state;
}

/// The fit of two variants at three sizes. At equal FLOPs, the loss of the second is `factor` times that of
/// the first.
SizeFit fit_of_two(double factor) {
  ComparisonPlan plan;
  plan.sizes = {"small", "medium", "large"};
  std::vector<RunResults> runs;
  for (const auto& [variant, times] : {std::pair("gpt", 1.0), std::pair("llama", factor)}) {
    double flops = 1e9;
    for (const auto& size : plan.sizes) {
      flops *= 4;
      PlannedVariant planned;
      planned.name = fmt::format("{}, {}", variant, size);
      planned.without_size = variant;
      planned.size = size;
      plan.variants.push_back(planned);
      const double loss = times * 10 * std::pow(flops, -0.1);
      runs.push_back({.name = planned.name});
      for (int seed = 1; seed <= 2; ++seed)
        runs.back().seeds.push_back(
            {.seed = seed, .state = after(flops), .metric = loss * (1 + 1e-4 * seed)});
    }
  }
  return size_fit(plan, runs, kFitted).value();
}

TEST(SizeFit, SaysWhatComputeTheSameLossNeeds) {
  const auto near = fit_of_two(0.95);
  EXPECT_EQ(near.overlaps[1], true);
  EXPECT_NEAR(near.fit.compute_ratios[1].value, std::pow(0.95, 10), 1e-3);
  EXPECT_THAT(size_finding(near, true), AllOf(StartsWith("llama needs 0.5987 (0.598"),
                                              HasSubstr(" times the compute of gpt for the same loss")));
  EXPECT_THAT(size_finding(near, true), Not(HasSubstr("extrapolated")));
  EXPECT_EQ(size_finding(near, false), "") << "an unfair comparison has no finding";
  auto vague = near;
  vague.fit.shared_exponent = {.value = 0.1, .low = -6.8, .high = 7.0};
  EXPECT_EQ(size_finding(vague, true), "") << "any exponent would fit";
}

TEST(SizeFit, SaysWhereNoMeasurementSupportsTheRatio) {
  const auto far = fit_of_two(0.6);  // better at the smallest size than the first at the largest
  EXPECT_EQ(far.overlaps[1], false);
  EXPECT_EQ(far.overlaps[0], true) << "with itself";
  EXPECT_THAT(size_finding(far, true), HasSubstr("; this is extrapolated, as their losses do not overlap."));
}

/// Runs of two variants at two sizes, two seeds each: loss(variant, size, seed).
struct SmallStudy {
  ComparisonPlan plan;
  std::vector<RunResults> runs;
};
template <class Loss>
SmallStudy study_of(const Metric& metric, Loss loss) {
  SmallStudy study;
  study.plan.sizes = {"small", "large"};
  for (int variant = 0; variant < 2; ++variant) {
    for (int size = 0; size < 2; ++size) {
      PlannedVariant planned;
      planned.name = fmt::format("{}, {}", variant, size);
      planned.without_size = fmt::format("v{}", variant);
      planned.size = study.plan.sizes[static_cast<size_t>(size)];
      study.plan.variants.push_back(planned);
      RunResults run{.name = planned.name};
      for (int seed = 1; seed <= 2; ++seed) {
        const double value = loss(variant, size, seed);
        run.seeds.push_back({.seed = seed,
                             .state = after(1e9 * std::pow(10, size) * (1 + variant)),
                             .metric = metric.better == Better::lower ? value : 1 / value,
                             .loss = value,
                             .learnt = value < 5});
      }
      study.runs.push_back(std::move(run));
    }
  }
  return study;
}
double small_loss(int variant, int size, int seed) {
  return 4 - 0.5 * size - 0.3 * variant + 0.001 * seed * (1 + size);
}

TEST(SizeFit, ASeedThatLearntNothingIsNoPoint) {
  const auto study = study_of(kFitted, [](int variant, int size, int seed) {
    return variant == 1 && size == 0 && seed == 2 ? 6.9 : small_loss(variant, size, seed);
  });
  const auto fit = size_fit(study.plan, study.runs, kFitted).value();
  EXPECT_EQ(fit.points.size(), 7U);
  for (const auto& point : fit.points) {
    EXPECT_LT(point.loss, 5);
    const bool is_second = point.variant == "v1";
    EXPECT_EQ(point.flops, (point.size == "small" ? 1e9 : 1e10) * (is_second ? 2 : 1));
  }
  EXPECT_EQ(fit.loss, "loss");
  EXPECT_EQ(fit.sizes, (std::vector<std::string>{"small", "large"}));
}

// Where a higher metric is better, the law is that of the loss.
TEST(SizeFit, OfAnAccuracyIsThatOfTheLoss) {
  const Metric accuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher};
  const auto study = study_of(accuracy, small_loss);
  const auto fit = size_fit(study.plan, study.runs, accuracy).value();
  EXPECT_EQ(fit.loss, "validation loss");
  ASSERT_EQ(fit.points.size(), 8U);
  EXPECT_DOUBLE_EQ(fit.points[7].loss, small_loss(1, 1, 2));
}

TEST(SizeFit, OfOneSizeIsNone) {
  auto study = study_of(kFitted, small_loss);
  for (size_t i : {1, 3})
    for (auto& seed : study.runs[i].seeds) seed.state.reset();
  EXPECT_FALSE(size_fit(study.plan, study.runs, kFitted));
  study.plan.sizes.clear();
  EXPECT_FALSE(size_fit(study.plan, study.runs, kFitted));
}

}  // namespace
}  // namespace zoo
