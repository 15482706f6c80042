#include "comparison/findings.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comparison/report/json.h"
#include "comparison/report/report_document.h"
#include "comparison/statistics/paired_test.h"
#include "comparison/statistics/power.h"

namespace zoo {
namespace {

/// The metrics of two runs for the seeds that count for both, side by side.
struct Pairs {
  std::vector<double> values, baseline;
};
Pairs pairs_of(const Json& run, const Json& other, const Metric& metric) {
  Pairs pairs;
  for (const auto& seed : run["seeds"]) {
    for (const auto& twin : other["seeds"]) {
      if (twin["seed"] != seed["seed"]) continue;
      const auto value = counted_value(run, seed, metric), baseline = counted_value(other, twin, metric);
      if (!value || !baseline) continue;
      pairs.values.push_back(*value);
      pairs.baseline.push_back(*baseline);
    }
  }
  return pairs;
}

double mean_of(const std::vector<double>& values) { return mean_interval(values).mean; }

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

/// The corrected values of those that are known, in their places.
std::vector<std::optional<double>> corrected_by_holm(const std::vector<std::optional<double>>& all) {
  std::vector<double> known;
  for (const auto& p : all) {
    if (p) known.push_back(*p);
  }
  const auto corrected = holm_corrected(known);
  std::vector<std::optional<double>> result;
  size_t next = 0;
  for (const auto& p : all) result.push_back(p ? std::optional(corrected[next++]) : std::nullopt);
  return result;
}

/// How many pairs would show a difference as large as the measured one; nothing if too many to train.
std::optional<int64_t> needed_for(const PairedTest& test, int64_t n_tests) {
  if (!test.error || *test.error == 0 || test.difference == 0) return std::nullopt;
  const double deviation = *test.error * std::sqrt(static_cast<double>(test.n));
  return pairs_needed(test.difference / deviation, n_tests);
}

bool learnt_in_part(const Json& run) {
  const int64_t n = n_not_learnt(run);
  return n > 0 && n < std::ssize(run["seeds"]);
}

}  // namespace

std::optional<double> counted_value(const Json& run, const Json& seed, const Metric& metric) {
  if (member(seed, "learnt") == false && ever_learnt(run)) return std::nullopt;
  return number_at(seed["valid"], metric.key.c_str());
}

void compare_with_baselines(Json& runs, const Metric& metric, const TestRules& rules) {
  struct Row {
    size_t run;
    PairedTest test;
    double margin;
  };
  std::vector<Row> rows;
  std::vector<std::optional<double>> p, p_same;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i]["baseline"].is_null()) continue;
    const auto pairs = pairs_of(runs[i], run_named(runs, runs[i]["baseline"]), metric);
    if (pairs.values.empty()) continue;
    const double margin = metric.percent ? rules.margin : rules.margin * std::abs(mean_of(pairs.baseline));
    rows.push_back({i, paired_t_test(pairs.values, pairs.baseline), margin});
    p.push_back(rows.back().test.p);
    p_same.push_back(equivalence_p(rows.back().test, margin));
  }
  const int64_t n_tests = std::ranges::count_if(p, [](const auto& one) { return one.has_value(); });
  const auto p_corrected = corrected_by_holm(p), p_same_corrected = corrected_by_holm(p_same);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [run, test, margin] = rows[i];
    const auto said =
        rules.fair ? verdict(test, p_corrected[i], p_same_corrected[i], metric.better) : Verdict::unfair;
    const auto needed = said == Verdict::undecided ? needed_for(test, n_tests) : std::nullopt;
    runs[run]["versus_baseline"] = {{"difference", test.difference},
                                    {"low", or_null(test.low)},
                                    {"high", or_null(test.high)},
                                    {"n", test.n},
                                    {"p", or_null(test.p)},
                                    {"p_corrected", or_null(p_corrected[i])},
                                    {"margin", margin},
                                    {"p_same", or_null(p_same_corrected[i])},
                                    {"seeds_needed", or_null(needed)},
                                    {"verdict", name_of(said)}};
  }
}

void mark_clear_best(Json& runs, const Metric& metric, bool fair) {
  const auto beats = [&](const Json& run, const Json& other) {
    if (other["metric"].is_null()) return true;
    const bool lower = metric.better == Better::lower;
    const auto end = number_at(run["metric"], lower ? "high" : "low");
    const auto begin = number_at(other["metric"], lower ? "low" : "high");
    return end && begin && (lower ? *end < *begin : *end > *begin);
  };
  for (auto& run : runs) {
    run["clear_best"] =
        fair && runs.size() > 1 && !run["metric"].is_null() &&
        std::ranges::all_of(runs, [&](const Json& other) { return &other == &run || beats(run, other); });
  }
}

Json power_json(const Json& runs) {
  int64_t n_tests = 0, n_pairs = 0;
  for (const auto& run : runs) {
    const auto& versus = run["versus_baseline"];
    if (versus.is_null() || versus["p"].is_null()) continue;
    ++n_tests;
    const int64_t n = versus["n"];
    n_pairs = n_tests == 1 ? n : std::min(n_pairs, n);
  }
  if (n_tests == 0) return nullptr;
  // The difference of two independent runs has √2 times the deviation of one.
  constexpr double deviations = 2;
  const double effect = deviations / std::numbers::sqrt2;
  return {{"deviations", deviations},
          {"seeds", n_pairs},
          {"tests", n_tests},
          {"probability", power_of_test(effect, n_pairs, n_tests)},
          {"seeds_needed", or_null(pairs_needed(effect, n_tests))}};
}

std::string findings(const Json& runs, const Metric& metric, bool fair) {
  const Json* best = nullptr;
  std::vector<std::string> worse, better, same, undecided, failed, partly, never;
  for (const auto& run : runs) {
    const auto name = run["name"].get<std::string>();
    if (run["metric"].is_null()) {
      failed.push_back(name);
      continue;
    }
    if (learnt_in_part(run))
      partly.push_back(fmt::format("{} ({} of {} seeds)", name, n_not_learnt(run), run["seeds"].size()));
    if (n_not_learnt(run) == std::ssize(run["seeds"])) never.push_back(name);
    if (!best || is_better(run["metric"]["mean"], (*best)["metric"]["mean"], metric)) best = &run;
    if (run["versus_baseline"].is_null()) continue;
    const auto said = run["versus_baseline"]["verdict"].get<std::string>();
    auto text = fmt::format("{} ({})", name, shown(run["metric"], metric));
    if (said == "better")
      better.push_back(std::move(text));
    else if (said == "worse")
      worse.push_back(std::move(text));
    else if (said == "same")
      same.push_back(std::move(text));
    else if (said == "undecided")
      undecided.push_back(std::move(text));
  }
  if (!best) return "No run could be trained to its end.";

  const auto& first = runs[0];
  const auto name = first["name"].get<std::string>(), baseline = baseline_text(runs);
  const int64_t n = (*best)["metric"]["n"];
  std::string text;
  if (fair) {
    text = fmt::format("The best mean of {} runs has {}: {} {}", runs.size(),
                       (*best)["name"].get<std::string>(), shown((*best)["metric"], metric), metric.label);
    text += n > 1 ? fmt::format(" (mean of {} seeds, 95 % interval)", n) : " (one seed: no interval)";
    if (!first["metric"].is_null() && best != &first)
      text += fmt::format("; the first run, {}, has {}", name, shown(first["metric"], metric));
    text += '.';
  } else {
    text = "The comparison is not fair, so it has no winner: the notices say what differs.";
  }
  text += sentence(fmt::format("Better than {}", baseline), better);
  text += sentence(fmt::format("Worse than {}", baseline), worse);
  text += sentence(fmt::format("The same as {}, up to the margin", baseline), same);
  text += sentence(fmt::format("Undecided against {}", baseline), undecided);
  text += sentence("Never learnt more than how frequent each token is", never);
  text += sentence("The same with some seeds, which do not count in the means", partly);
  return text + sentence("Failed with every seed", failed);
}

}  // namespace zoo
