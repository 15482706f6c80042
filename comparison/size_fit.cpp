#include "comparison/size_fit.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comparison/findings.h"
#include "comparison/statistics/power_law.h"
#include "pages/report/report_document.h"

namespace zoo {
namespace {

Json to_json(const Estimate& estimate) {
  return {{"value", estimate.value}, {"low", or_null(estimate.low)}, {"high", or_null(estimate.high)}};
}

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

}  // namespace

Json size_fit(const ComparisonPlan& plan, const Json& runs, const Metric& metric) {
  if (plan.sizes.empty()) return nullptr;
  const bool by_metric = metric.better == Better::lower;
  std::vector<std::string> names;
  std::vector<LossPoint> points;
  Json shown_points = Json::array();
  for (size_t i = 0; i < plan.variants.size(); ++i) {
    const auto& variant = plan.variants[i];
    const auto found = std::ranges::find(names, variant.without_size);
    const auto index = found - names.begin();
    if (found == names.end()) names.push_back(variant.without_size);
    for (const auto& seed : runs[i]["seeds"]) {
      if (!counted_value(runs[i], seed, metric)) continue;
      const Json& loss = by_metric ? seed["valid"][metric.key] : member(seed, "valid_loss");
      const Json& flops = member(seed, "flops");
      if (!loss.is_number() || !flops.is_number()) continue;
      points.push_back({.variant = index, .flops = flops, .loss = loss});
      shown_points.push_back({{"run", runs[i]["name"]},
                              {"variant", variant.without_size},
                              {"size", variant.size},
                              {"seed", seed["seed"]},
                              {"flops", flops},
                              {"loss", loss}});
    }
  }
  ScalingFit fit;
  try {
    fit = fit_scaling(points, std::ssize(names));
  } catch (const std::invalid_argument&) {
    return nullptr;
  }
  Json variants = Json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    variants.push_back({{"name", names[i]},
                        {"exponent", to_json(fit.own[i].exponent)},
                        {"scale", fit.own[i].scale},
                        {"compute_ratio", to_json(fit.compute_ratios[i])},
                        {"overlaps", losses_overlap(points, 0, static_cast<int64_t>(i))}});
  }
  return {{"names", plan.sizes},
          {"loss", by_metric ? metric.label : "validation loss"},
          {"exponent", to_json(fit.shared_exponent)},
          {"p_equal_exponents", or_null(fit.p_equal_exponents)},
          {"variants", std::move(variants)},
          {"points", std::move(shown_points)}};
}

std::string size_finding(const Json& sizes, bool fair) {
  if (sizes.is_null() || !fair) return "";
  const auto& variants = sizes["variants"];
  std::vector<std::string> needs;
  bool all_overlap = true;
  for (size_t i = 1; i < variants.size(); ++i) {
    all_overlap = all_overlap && member(variants[i], "overlaps") != false;
    needs.push_back(fmt::format("{}{} {}", text_at(variants[i], "name"), i == 1 ? " needs" : "",
                                estimate_text(variants[i]["compute_ratio"], 2)));
  }
  if (needs.empty()) return "";
  auto text = fmt::format("For the same {}, {} times the compute of {}", text_at(sizes, "loss"),
                          fmt::join(needs, ", "), text_at(variants[0], "name"));
  if (const auto p = number_at(sizes, "p_equal_exponents"); p && *p < 0.05)
    text += fmt::format("; the lines are not parallel (p = {:.3f}), so the ratio changes with the size", *p);
  if (!all_overlap) text += "; this is extrapolated, as their losses do not overlap";
  return text + ".";
}

}  // namespace zoo
