#include "pages/tables/markdown_sections.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/json_document.h"
#include "pages/tables/confusion.h"
#include "pages/tables/expert_tables.h"
#include "pages/tables/report_document.h"

namespace zoo::markdown {
namespace {

/// Mean step and mean metric over the seeds that did not fail, at point `i` of `n` points that are spread
/// evenly over the evaluations of each seed.
std::optional<std::pair<double, double>> mean_point(const Json& run, size_t i, size_t n) {
  double steps = 0, values = 0, count = 0;
  for (const auto& seed : run["seeds"]) {
    const Json &step = member(member(seed, "curve"), "step"),
               &metric = member(member(seed, "curve"), "metric");
    if (text_at(seed, "end") == "failed" || !metric.is_array() || metric.empty()) continue;
    const size_t at = n == 1 ? metric.size() - 1 : i * (metric.size() - 1) / (n - 1);
    if (!metric[at].is_number() || !step[at].is_number()) continue;
    steps += step[at].get<double>();
    values += metric[at].get<double>();
    count += 1;
  }
  if (count == 0) return std::nullopt;
  return std::pair{steps / count, values / count};
}

/// Where the best value is at the edge of the grid: " (edge of the grid)", with the keys if there are
/// several.
std::string edge_text(const Json& variant) {
  if (member(variant, "at_edge") != true) return "";
  const Json& keys = member(variant, "keys_at_edge");
  if (!keys.is_array() || text_at(variant, "chosen").find(',') == std::string::npos)
    return " (edge of the grid)";
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(plain(key.get<std::string>()));
  return fmt::format(" (edge of the grid in {})", fmt::join(names, ", "));
}

/// Tokens are called by the unit of the task: of images, the budget counts images.
std::string budget_text(const Json& results) {
  const Json& budget = member(results, "budget");
  const auto value = number_at(budget, "amount");
  const std::string kind = text_at(budget, "kind");
  if (!value || *value == 0) return "";  // 0: nothing was trained here
  if (kind == "flops") return amount(value, "FLOP");
  if (kind == "steps") return fmt::format("{:.0f} {}", *value, *value == 1 ? "step" : "steps");
  return amount(value) + " " + (kind == "tokens" ? unit_of(results) + "s" : kind);
}

/// The text of the estimate {value, low, high} at `key`.
std::string estimate_at(const Json& object, const char* key, int decimals) {
  const Json& estimate = member(object, key);
  return estimate_text(number_at(estimate, "value"), number_at(estimate, "low"), number_at(estimate, "high"),
                       decimals);
}

/// Whose method corrects p for several tests.
std::string_view correction_rule(const Json& results) {
  return text_at(results, "correction") == "benjamini_hochberg" ? "Benjamini and Hochberg's" : "Holm's";
}

/// A description of the row that the others are compared with.
std::string_view baseline_rule(const Json& runs) {
  const auto n = std::count_if(runs.begin(), runs.end(),
                               [](const Json& run) { return member(run, "baseline").is_null(); });
  const bool has_ablation =
      std::ranges::any_of(runs, [](const Json& run) { return run.contains("ablation"); });
  if (has_ablation)
    return n > 1 ? "the first run with the same values of the grid (an ablation: its model)"
                 : "the first run (an ablation: its model)";
  return n > 1 ? "the first run with the same values of the grid" : "the first run";
}

}  // namespace

std::string curves(const Json& results, const MetricText& metric) {
  constexpr size_t kPoints = 4;
  std::string list;
  for (const auto& run : results["runs"]) {
    std::vector<std::string> points;
    for (size_t i = 0; i < kPoints; ++i) {
      const auto point = mean_point(run, i, kPoints);
      if (!point) continue;
      std::string text = fmt::format("{} at step {:.0f}", metric(point->second), point->first);
      if (points.empty() || points.back() != text) points.push_back(std::move(text));
    }
    if (!points.empty())
      list += fmt::format("- {}: {}\n", plain(text_at(run, "name")), fmt::join(points, ", "));
  }
  if (list.empty()) return "";
  return fmt::format("## Learning curves\n\n{} on validation data, mean over the seeds:\n\n{}\n",
                     metric.label(), list);
}

// ---- Other lengths ----

std::string lengths(const Json& results, const MetricText& metric) {
  std::set<int64_t> all;
  for (const auto& run : results["runs"])
    for (const auto& entry : member(run, "lengths"))
      if (const auto length = number_at(entry, "length")) all.insert(static_cast<int64_t>(*length));
  if (all.empty()) return "";
  Row head = {"run"};
  for (const int64_t length : all) head.push_back(fmt::format("{} tokens", length));
  std::vector<Row> rows;
  for (const auto& run : results["runs"]) {
    rows.push_back({plain(text_at(run, "name"))});
    for (const int64_t length : all) {
      std::string cell = "–";
      for (const auto& entry : member(run, "lengths")) {
        const auto mean = number_at(entry, "mean"), high = number_at(entry, "high");
        if (!mean || number_at(entry, "length") != static_cast<double>(length)) continue;
        cell = metric(*mean) + (high ? " ± " + metric(*high - *mean) : "");
      }
      rows.back().push_back(std::move(cell));
    }
  }
  return fmt::format("## At other lengths\n\n{} on texts of these lengths:\n\n{}\n", metric.label(),
                     table(head, rows, 1));
}

// ---- Slices ----

std::string slices(const Json& results) {
  Row head = {"slice", "bytes"};
  std::vector<const Json*> runs;
  std::vector<std::string> names;
  for (const auto& run : results["runs"]) {
    if (!member(run, "slices").is_array()) continue;
    runs.push_back(&run);
    head.push_back(plain(text_at(run, "name")));
    for (const auto& slice : run["slices"]) {
      if (auto name = text_at(slice, "name"); std::ranges::find(names, name) == names.end())
        names.push_back(std::move(name));
    }
  }
  if (runs.empty()) return "";
  std::vector<Row> rows;
  for (const auto& name : names) {
    Row row = {plain(name), "–"};
    for (const auto* const run : runs) {
      const auto found = std::ranges::find_if(
          (*run)["slices"], [&](const Json& slice) { return text_at(slice, "name") == name; });
      const auto value = found == (*run)["slices"].end() ? std::nullopt : number_at(*found, "value");
      if (!value) {
        row.push_back("–");
        continue;
      }
      if (const auto share = number_at(*found, "share"); share && row[1] == "–")
        row[1] = fmt::format("{:.1f} %", 100 * *share);
      const auto verdict = text_at(*found, "verdict"),
                 word = verdict == "undecided" ? "not told apart" : verdict;
      row.push_back(fmt::format("{:.3f}{}", *value, word.empty() ? "" : fmt::format(" ({})", plain(word))));
    }
    rows.push_back(std::move(row));
  }
  return fmt::format(
      "## Where they differ\n\nBits per byte on parts of the validation texts, and verdicts against {}: p by "
      "exchanging single examples at random, corrected for all slices:\n\n{}\n",
      baseline_rule(results["runs"]), table(head, rows, 1));
}

// ---- Sizes ----

std::string sizes(const Json& results) {
  const Json& fit = member(results, "sizes");
  if (!fit.is_object()) return "";
  std::vector<Row> rows;
  for (const auto& variant : fit["variants"])
    rows.push_back({plain(text_at(variant, "name")), estimate_at(variant, "exponent", 4),
                    estimate_at(variant, "compute_ratio", 3)});
  auto text = fmt::format(
      "## Sizes\n\nFits of {} = A · FLOPs^(-exponent) over the sizes and seeds, with 95 % intervals. The "
      "compute is that for the same loss as the first variant, from lines with the common exponent {}.",
      plain(text_at(fit, "loss")), estimate_at(fit, "exponent", 4));
  if (const auto p = number_at(fit, "p_equal_exponents"))
    text += fmt::format(" Equal exponents: {}.", p_text(*p));
  return text + "\n\n" + table({"variant", "exponent", "compute"}, rows, 1) + "\n";
}

// ---- Experts ----

std::string experts(const Json& results) {
  std::vector<Row> rows;
  for (const auto& run : results["runs"]) {
    const auto layers = expert_loads_of(run);
    if (layers.empty()) continue;
    double busiest = 0;
    int64_t idle = 0;
    size_t all = 0;
    for (const auto& layer : layers) {
      busiest = std::max(busiest, layer.busiest());
      idle += layer.n_idle();
      all += layer.tokens.size();
    }
    rows.push_back(
        {plain(text_at(run, "name")), fmt::format("{:.2f}", busiest), fmt::format("{} of {}", idle, all)});
  }
  if (rows.empty()) return "";
  return "## Experts\n\nHow the tokens of validation data are divided, over all layers of one seed: those of "
         "the busiest expert, divided by an even share, and the experts that had none.\n\n" +
         table({"run", "busiest", "without tokens"}, rows, 1) + "\n";
}

// ---- Mistakes ----

std::string mistakes(const Json& results) {
  constexpr size_t kShown = 5;
  std::string list;
  for (const auto& run : results["runs"]) {
    const auto confusion = confusion_of(run);
    if (!confusion) continue;
    std::vector<std::string> texts;
    for (const auto& [right, predicted, count, share] : commonest_mistakes(*confusion, kShown))
      texts.push_back(
          fmt::format("{} for {} {} ({:.0f} %)", plain(right), plain(predicted), count, 100 * share));
    list += fmt::format("- {}: {}\n", plain(text_at(run, "name")),
                        texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", ")));
  }
  if (list.empty()) return "";
  return fmt::format(
      "## Mistakes\n\nThe classes that were taken most often for another, with the share of their examples, "
      "on validation data, summed over the seeds:\n\n{}\n",
      list);
}

// ---- Tuning ----

std::string tuning(const Json& results, const MetricText& metric) {
  const Json& variants = member(member(results, "tuning"), "variants");
  if (!variants.is_array() || variants.empty()) return "";
  Row head = {"run", "chosen"};
  for (const auto& candidate : variants[0]["candidates"]) head.push_back(plain(text_at(candidate, "name")));
  head.insert(head.end(), {"FLOPs", "seconds"});
  std::vector<Row> rows;
  for (const auto& variant : variants) {
    const auto chosen = text_at(variant, "chosen");
    Row row = {plain(text_at(variant, "name")), plain(chosen) + edge_text(variant)};
    for (const auto& candidate : variant["candidates"]) {
      const auto value = number_at(candidate, "metric");
      const auto text = value ? metric(*value) : "failed";
      row.push_back(text_at(candidate, "name") == chosen ? "**" + text + "**" : text);
    }
    row.push_back(amount(number_at(variant, "flops")));
    row.push_back(fmt::format("{:.0f}", number_at(variant, "seconds").value_or(0)));
    rows.push_back(std::move(row));
  }
  return fmt::format(
      "## Tuning\n\nEach run chose its values by short trainings with {:g} % of the budget and other seeds. "
      "{} of each candidate:\n\n{}\n",
      100 * number_at(results["tuning"], "share").value_or(0), metric.label(), table(head, rows, 2));
}

std::string facts(const Json& results) {
  std::vector<std::string> items;
  const auto add = [&items](std::string_view what, const std::string& text) {
    if (!text.empty()) items.push_back(fmt::format("- {}: {}", what, text));
  };
  std::string task = text_at(results, "task");
  std::replace(task.begin(), task.end(), '_', ' ');
  add("Task", plain(task));
  const Json& metric = results["metric"];
  add("Metric", fmt::format("{}, {} is better; ± is half the 95 % interval of the mean over the seeds",
                            plain(text_at(metric, "label")), text_at(metric, "better")));
  add("Budget of a run", budget_text(results));
  std::vector<std::string> seeds;
  for (const auto& seed : results["seeds"]) seeds.push_back(json_text(seed));
  add("Seeds", fmt::format("{}", fmt::join(seeds, ", ")));
  if (const Json& match = member(results, "match"); match.is_object())
    add("Matched",
        fmt::format("{} at {}, within {:.1f} %", plain(text_at(match, "quantity")),
                    amount(number_at(match, "target")), 100 * number_at(match, "spread").value_or(0)));
  const auto over_examples = [](const Json& run) { return is_over_examples(member(run, "versus_baseline")); };
  if (std::ranges::any_of(results["runs"], over_examples)) {
    add("Verdicts",
        fmt::format("the same examples by both models, against {}: p by exchanging their values at random, "
                    "interval by bootstrap, p corrected by {} method, at p < 0.05",
                    baseline_rule(results["runs"]), correction_rule(results)));
  } else if (results["runs"].size() > 1 && results["seeds"].size() > 1)
    add("Verdicts",
        fmt::format("paired t-test over the seeds against {}, p corrected by {} method, at p < 0.05",
                    baseline_rule(results["runs"]), correction_rule(results)));
  if (const auto margin = number_at(results, "margin"))
    add("Same", fmt::format("surely within {:g} {} of the baseline (two one-sided tests, whose p it has)",
                            100 * *margin, member(metric, "percent") == true ? "points" : "%"));
  if (const Json& power = member(results, "power"); power.is_object()) {
    auto text = fmt::format(
        "{} seeds in {} tests find a difference of {:g} standard deviations of a run with a probability of "
        "{:.0f} %",
        json_text(power["seeds"]), json_text(power["tests"]), number_at(power, "deviations").value_or(0),
        100 * number_at(power, "probability").value_or(0));
    if (const auto needed = number_at(power, "seeds_needed"))
      text += fmt::format("; {:.0f} seeds find it with 80 %", *needed);
    add("Power", text);
  }
  const Json &machine = member(results, "machine"), &versions = member(results, "versions");
  std::string machine_text = plain(text_at(machine, "cpu"));
  if (const auto cores = number_at(machine, "cores"))
    machine_text += fmt::format(", {:.0f} core{}", *cores, *cores == 1 ? "" : "s");
  if (const auto threads = number_at(machine, "threads"))
    machine_text += fmt::format(", {:.0f} thread{} used", *threads, *threads == 1 ? "" : "s");
  if (const auto memory = number_at(machine, "memory_bytes")) machine_text += ", " + amount(memory, "B");
  if (const auto device = text_at(machine, "device"); !device.empty())
    machine_text += ", device " + plain(device);
  if (const auto system = text_at(machine, "system"); !system.empty()) machine_text += ", " + plain(system);
  add("Machine", machine_text);
  std::vector<std::string> made_with;
  for (const auto& [key, name] : {std::pair{"transformer_zoo", "transformer-zoo"},
                                  {"commit", "commit"},
                                  {"libtorch", "LibTorch"},
                                  {"compiler", "compiler"}})
    if (const auto version = text_at(versions, key); !version.empty())
      made_with.push_back(fmt::format("{} {}", name, plain(version)));
  add("Made with", fmt::format("{}", fmt::join(made_with, ", ")));
  return fmt::format("## How it was measured\n\n{}\n\n", fmt::join(items, "\n"));
}

std::string effects(const Json& results, const MetricText& metric) {
  const Json& list = member(results, "effects");
  if (!list.is_array() || list.empty()) return "";
  std::vector<Row> rows;
  for (const auto& effect : list) {
    const auto low = number_at(effect, "low"), high = number_at(effect, "high"),
               p = number_at(effect, "p_corrected");
    rows.push_back(
        {code(text_at(effect, "key")), plain(text_at(effect, "from") + " → " + text_at(effect, "to")),
         metric.with_sign(number_at(effect, "difference").value_or(0)),
         low && high ? fmt::format("{} to {}", metric.with_sign(*low), metric.with_sign(*high)) : "–",
         text_at(effect, "verdict") + (p ? ", " + p_text(*p) : "")});
  }
  return "## Main effects\n\nThe difference that each key makes on average over all runs.\n\n" +
         table({"key", "change", metric.label(), "95 % interval", "verdict"}, rows, 2) + "\n";
}

std::string gaps(const Json& results) {
  const Json& list = member(results, "protocol");
  if (!list.is_array() || list.empty()) return "";
  std::string text = "## What it lacks\n\n";
  for (const auto& gap : list) text += fmt::format("- {}\n", plain(gap.get<std::string>()));
  return text + "\n";
}

}  // namespace zoo::markdown
