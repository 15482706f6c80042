#include "comparison/findings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comparison/report/json.h"
#include "comparison/statistics.h"

namespace zoo {
namespace {

/// The metric of one seed; nothing where it failed.
std::optional<double> value_of(const Json& seed, const Metric& metric) {
  const auto& valid = seed["valid"];
  const auto found = valid.find(metric.key);
  return found != valid.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

/// The metrics of two runs for the seeds that both have, side by side.
struct Pairs {
  std::vector<double> values, baseline;
};
Pairs pairs_of(const Json& run, const Json& other, const Metric& metric) {
  Pairs pairs;
  for (const auto& seed : run["seeds"]) {
    for (const auto& twin : other["seeds"]) {
      if (twin["seed"] != seed["seed"]) continue;
      const auto value = value_of(seed, metric), baseline = value_of(twin, metric);
      if (!value || !baseline) continue;
      pairs.values.push_back(*value);
      pairs.baseline.push_back(*baseline);
    }
  }
  return pairs;
}

/// "1.907 ± 0.006", "83.1 ± 0.4 %"
std::string shown(const Json& interval, const Metric& metric) {
  const double factor = metric.percent ? 100 : 1;
  const int digits = metric.percent ? 1 : 3;
  const double mean = interval["mean"];
  std::string text = fmt::format("{:.{}f}", factor * mean, digits);
  if (interval["high"].is_number())
    text += fmt::format(" ± {:.{}f}", factor * (interval["high"].get<double>() - mean), digits);
  return text + (metric.percent ? " %" : "");
}

bool is_better(double a, double b, const Metric& metric) {
  return metric.better == Better::lower ? a < b : a > b;
}

/// " Significantly worse than gpt: a, b, c and 4 more."
std::string sentence(std::string_view what, std::vector<std::string> names) {
  constexpr size_t most = 8;
  if (names.empty()) return {};
  std::string rest;
  if (names.size() > most) {
    rest = fmt::format(" and {} more", names.size() - most);
    names.resize(most);
  }
  return fmt::format(" {}: {}{}.", what, fmt::join(names, ", "), rest);
}

const Json& run_named(const Json& runs, const Json& name) {
  return *std::find_if(runs.begin(), runs.end(), [&](const Json& run) { return run["name"] == name; });
}

/// The baseline of the verdicts: its name where all runs share it, else a description.
std::string baseline_text(const Json& runs) {
  std::set<std::string> names;
  for (const auto& run : runs) {
    if (run["baseline"].is_string()) names.insert(run["baseline"].get<std::string>());
  }
  return names.size() == 1 ? *names.begin() : "the first run with the same values of the grid";
}

}  // namespace

void compare_with_baselines(nlohmann::ordered_json& runs, const Metric& metric) {
  std::vector<size_t> rows;
  std::vector<PairedTest> tests;
  std::vector<double> p_values;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i]["baseline"].is_null()) continue;
    const auto pairs = pairs_of(runs[i], run_named(runs, runs[i]["baseline"]), metric);
    if (pairs.values.empty()) continue;
    rows.push_back(i);
    tests.push_back(paired_t_test(pairs.values, pairs.baseline));
    if (tests.back().p) p_values.push_back(*tests.back().p);
  }
  const auto corrected = holm_corrected(p_values);
  size_t next = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& test = tests[i];
    const auto p = test.p ? std::optional(corrected[next++]) : std::nullopt;
    runs[rows[i]]["versus_baseline"] = {
        {"difference", test.difference}, {"low", or_null(test.low)},
        {"high", or_null(test.high)},    {"p", or_null(test.p)},
        {"p_corrected", or_null(p)},     {"verdict", name_of(verdict(test.difference, p, metric.better))}};
  }
}

std::string findings(const nlohmann::ordered_json& runs, const Metric& metric) {
  const Json* best = nullptr;
  std::vector<std::string> worse, better, same, failed;
  for (const auto& run : runs) {
    const auto name = run["name"].get<std::string>();
    if (run["metric"].is_null()) {
      failed.push_back(name);
      continue;
    }
    if (!best || is_better(run["metric"]["mean"], (*best)["metric"]["mean"], metric)) best = &run;
    if (run["versus_baseline"].is_null()) continue;
    const auto said = run["versus_baseline"]["verdict"].get<std::string>();
    const auto text = fmt::format("{} ({})", name, shown(run["metric"], metric));
    if (said == "better") better.push_back(text);
    if (said == "worse") worse.push_back(text);
    if (said == "same") same.push_back(text);
  }
  if (!best) return "No run could be trained to its end.";

  const auto& first = runs[0];
  const auto name = first["name"].get<std::string>(), baseline = baseline_text(runs);
  const int64_t n = (*best)["metric"]["n"];
  std::string text =
      fmt::format("The best of {} is {} with {} {}", runs.size(), (*best)["name"].get<std::string>(),
                  shown((*best)["metric"], metric), metric.label);
  text += n > 1 ? fmt::format(" (mean of {} seeds, 95 % interval)", n) : " (one seed: no interval)";
  if (!first["metric"].is_null() && best != &first)
    text += fmt::format("; the first run, {}, has {}", name, shown(first["metric"], metric));
  text += '.';
  text += sentence(fmt::format("Significantly better than {}", baseline), better);
  text += sentence(fmt::format("Significantly worse than {}", baseline), worse);
  text += sentence(fmt::format("Not significantly different from {}", baseline), same);
  return text + sentence("Failed with every seed", failed);
}

}  // namespace zoo
