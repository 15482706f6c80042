#include "comparison/findings/main_effects.h"

#include <algorithm>
#include <map>
#include <utility>

namespace zoo {
namespace {

/// A key with two values, in the order of the file.
struct TwoLevels {
  std::string key;
  std::vector<std::string> values;
};

std::vector<TwoLevels> two_level_keys(const ComparisonPlan& plan) {
  std::vector<TwoLevels> keys;
  for (const auto& variant : plan.variants) {
    for (const auto& [key, value] : variant.grid) {
      auto found = std::ranges::find(keys, key, &TwoLevels::key);
      if (found == keys.end()) found = keys.insert(keys.end(), {.key = key, .values = {}});
      if (std::ranges::find(found->values, value) == found->values.end()) found->values.push_back(value);
    }
  }
  std::erase_if(keys, [](const TwoLevels& key) { return key.values.size() != 2; });
  return keys;
}

/// The metric of each seed that was trained to its end.
std::map<int64_t, double> values_of(const RunResults& run) {
  std::map<int64_t, double> values;
  for (const auto& seed : run.seeds) {
    if (seed.metric && seed.end != SeedEnd::failed) values.emplace(seed.seed, *seed.metric);
  }
  return values;
}

std::string value_at(const PlannedVariant& variant, const std::string& key) {
  const auto found = std::ranges::find(variant.grid, key, &KeyValue::key);
  return found == variant.grid.end() ? "" : found->value;
}

double mean_of(const std::vector<double>& values) { return mean_interval(values).mean; }

}  // namespace

std::vector<MainEffect> main_effects(const ComparisonPlan& plan, const std::vector<RunResults>& runs,
                                     const Metric& metric) {
  const auto keys = two_level_keys(plan);
  if (keys.size() < 2 || runs.size() != plan.variants.size()) return {};
  std::vector<std::map<int64_t, double>> values;
  for (const auto& run : runs) values.push_back(values_of(run));
  std::vector<int64_t> seeds;
  for (const auto& [seed, value] : values.front()) {
    if (std::ranges::all_of(values, [&, s = seed](const auto& of_row) { return of_row.contains(s); }))
      seeds.push_back(seed);
  }
  if (seeds.empty()) return {};
  std::vector<MainEffect> effects;
  for (const auto& [key, levels] : keys) {
    std::vector<double> second, first;
    for (const int64_t seed : seeds) {
      std::vector<double> with_first, with_second;
      for (size_t i = 0; i < runs.size(); ++i) {
        if (plan.variants[i].ablation) continue;
        const auto level = value_at(plan.variants[i], key);
        if (level == levels[0]) with_first.push_back(values[i].at(seed));
        if (level == levels[1]) with_second.push_back(values[i].at(seed));
      }
      first.push_back(mean_of(with_first));
      second.push_back(mean_of(with_second));
    }
    effects.push_back({.key = key, .from = levels[0], .to = levels[1], .test = paired_t_test(second, first)});
  }
  std::vector<std::optional<double>> p;
  for (const auto& effect : effects) p.push_back(effect.test.p);
  p = corrected_known(plan.settings.correction, p);
  for (size_t i = 0; i < effects.size(); ++i) {
    effects[i].p_corrected = p[i];
    effects[i].verdict = verdict(effects[i].test, p[i], std::nullopt, metric.better);
  }
  return effects;
}

}  // namespace zoo
