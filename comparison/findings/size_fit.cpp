#include "comparison/findings/size_fit.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comparison/findings/findings.h"
#include "pages/tables/markdown_text.h"
#include "pages/tables/report_document.h"

namespace zoo {
namespace {

/// Whether some losses of two variants are equally good. If not, no measurement shows what compute one of
/// them needs for the loss of the other.
bool losses_overlap(const std::vector<LossPoint>& points, int64_t one, int64_t other) {
  const auto range = [&](int64_t variant) {
    std::vector<double> losses;
    for (const auto& point : points) {
      if (point.variant == variant) losses.push_back(point.loss);
    }
    return std::ranges::minmax(losses);
  };
  const auto a = range(one), b = range(other);
  return a.min <= b.max && b.min <= a.max;
}

/// Decimals that show two significant digits of an estimate and one of its interval.
int decimals_of(const Estimate& estimate) {
  const int digits = digits_after_point(estimate.value, 2);
  if (!estimate.low || !estimate.high) return digits;
  return std::max(digits, digits_after_point((*estimate.high - *estimate.low) / 2, 1));
}

}  // namespace

std::optional<SizeFit> size_fit(const ComparisonPlan& plan, const std::vector<RunResults>& runs,
                                const Metric& metric) {
  if (plan.sizes.empty()) return std::nullopt;
  const bool by_metric = metric.better == Better::lower;
  SizeFit sizes{.sizes = plan.sizes, .loss = by_metric ? metric.label : "validation loss"};
  std::vector<LossPoint> points;
  for (size_t i = 0; i < plan.variants.size(); ++i) {
    const auto& variant = plan.variants[i];
    if (variant.ablation) continue;  // it has no training of its own
    const auto found = std::ranges::find(sizes.variants, variant.without_size);
    const auto index = found - sizes.variants.begin();
    if (found == sizes.variants.end()) sizes.variants.push_back(variant.without_size);
    for (const auto& seed : runs[i].seeds) {
      const auto& loss = by_metric ? seed.metric : seed.loss;
      if (!counted_value(runs[i], seed) || !loss || !seed.state) continue;
      points.push_back({.variant = index, .flops = seed.state->flops, .loss = *loss});
      sizes.points.push_back({.run = runs[i].name,
                              .variant = variant.without_size,
                              .size = variant.size,
                              .seed = seed.seed,
                              .flops = seed.state->flops,
                              .loss = *loss});
    }
  }
  const auto n_variants = std::ssize(sizes.variants);
  try {
    sizes.fit = fit_scaling(points, n_variants);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  for (int64_t i = 0; i < n_variants; ++i) sizes.overlaps.push_back(losses_overlap(points, 0, i));
  return sizes;
}

std::string size_finding(const std::optional<SizeFit>& sizes, bool fair) {
  if (!sizes || !fair) return "";
  std::vector<std::string> needs;
  for (size_t i = 1; i < sizes->variants.size(); ++i) {
    const auto& ratio = sizes->fit.compute_ratios[i];
    needs.push_back(fmt::format("{}{} {}", sizes->variants[i], i == 1 ? " needs" : "",
                                estimate_text(ratio.value, ratio.low, ratio.high, decimals_of(ratio))));
  }
  const auto& exponent = sizes->fit.shared_exponent;
  const bool is_known = exponent.low && exponent.high && (*exponent.low > 0 || *exponent.high < 0);
  if (needs.empty() || !is_known) return "";
  auto text = fmt::format("{} times the compute of {} for the same {}", fmt::join(needs, ", "),
                          sizes->variants[0], sizes->loss);
  if (const auto& p = sizes->fit.p_equal_exponents; p && *p < kSignificance)
    text += fmt::format("; the lines are not parallel ({}), so the ratio changes with the size",
                        markdown::p_text(*p));
  if (std::ranges::find(sizes->overlaps, false) != sizes->overlaps.end())
    text += "; this is extrapolated, as their losses do not overlap";
  return text + ".";
}

}  // namespace zoo
