#include "comparison/size_fit.h"

#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Metric kFitted{.key = "loss", .label = "loss"};

/// The fit of two variants at three sizes. At equal FLOPs, the loss of the second is `factor` times that of
/// the first.
nlohmann::ordered_json fit_of_two(double factor) {
  ComparisonPlan plan;
  plan.sizes = {"small", "medium", "large"};
  auto runs = nlohmann::ordered_json::array();
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
      auto seeds = nlohmann::ordered_json::array();
      for (int seed = 1; seed <= 2; ++seed)
        seeds.push_back({{"seed", seed}, {"flops", flops}, {"valid", {{"loss", loss * (1 + 1e-4 * seed)}}}});
      runs.push_back({{"name", planned.name}, {"seeds", seeds}});
    }
  }
  return size_fit(plan, runs, kFitted);
}

TEST(SizeFit, SaysWhatComputeTheSameLossNeeds) {
  const auto near = fit_of_two(0.95);
  EXPECT_EQ(near["variants"][1]["overlaps"], true);
  EXPECT_NEAR(near["variants"][1]["compute_ratio"]["value"].get<double>(), std::pow(0.95, 10), 1e-3);
  EXPECT_THAT(size_finding(near, true), HasSubstr("For the same loss, llama needs 0.60"));
  EXPECT_THAT(size_finding(near, true), Not(HasSubstr("extrapolated")));
  EXPECT_EQ(size_finding(near, false), "") << "an unfair comparison has no finding";
}

TEST(SizeFit, SaysWhereNoMeasurementSupportsTheRatio) {
  const auto far = fit_of_two(0.6);  // better at the smallest size than the first at the largest
  EXPECT_EQ(far["variants"][1]["overlaps"], false);
  EXPECT_EQ(far["variants"][0]["overlaps"], true) << "with itself";
  EXPECT_THAT(size_finding(far, true), HasSubstr("; this is extrapolated, as their losses do not overlap."));
}

}  // namespace
}  // namespace zoo
