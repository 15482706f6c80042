#include "comparison/report/report_markdown.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "comparison/report/json.h"
#include "comparison/report/report_document.h"
#include "comparison/report/table.h"

namespace zoo {

namespace {

constexpr size_t kMostColumns = 6;  // of runs side by side; more runs become rows

// ---- Text ----

/// Text on one line with all markup escaped, also for a table.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\`*_<>[]|#~$").find(c) != std::string_view::npos) result += '\\';
    result += c == '\n' || c == '\r' ? ' ' : c;
  }
  return result;
}

/// Text as code in a cell of a table.
std::string code(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '`' ? '\'' : c == '\n' || c == '\r' ? ' ' : c;
  }
  return result.empty() ? "–" : "`" + result + "`";
}

using Row = std::vector<std::string>;

/// The first `left` columns hold words, the others numbers.
std::string table(const Row& head, const std::vector<Row>& rows, size_t left) {
  std::string result = fmt::format("| {} |\n|", fmt::join(head, " | "));
  for (size_t i = 0; i < head.size(); ++i) result += i < left ? "---|" : "---:|";
  result += '\n';
  for (const auto& row : rows) result += fmt::format("| {} |\n", fmt::join(row, " | "));
  return result;
}

// ---- Numbers ----

/// 1234567 → "1.23 M"; `unit` follows.
std::string amount(std::optional<double> value, std::string_view unit = "") {
  if (!value) return "–";
  std::string text = with_prefix(*value) + std::string(unit);
  if (text.back() == ' ') text.pop_back();
  return text;
}

/// Writes values of the metric: as a percentage or not, and all with the same number of decimals.
class MetricText {
 public:
  explicit MetricText(const Json& results)
      : percent_(results["metric"]["percent"].get<bool>()),
        label_(results["metric"]["label"].get<std::string>()) {
    std::vector<double> halves, means;
    for (const auto& run : results["runs"]) {
      if (const auto half = half_width(run); half && *half > 0) halves.push_back(*half * factor());
      if (const auto mean = number_at(run["metric"], "mean"); mean && *mean != 0)
        means.push_back(std::abs(*mean) * factor());
    }
    // Two digits of the median interval; without intervals, four digits of the median metric.
    const double half = middle(halves), mean = middle(means);
    const double digits =
        half > 0 ? 1 - std::floor(std::log10(half)) : 3 - std::floor(std::log10(mean > 0 ? mean : 1));
    decimals_ = static_cast<int>(std::clamp(digits, percent_ ? 1.0 : 2.0, 5.0));
  }

  static std::optional<double> half_width(const Json& run) {
    const auto low = number_at(run["metric"], "low"), high = number_at(run["metric"], "high");
    if (!low || !high) return std::nullopt;
    return (*high - *low) / 2;
  }
  std::string label() const { return plain(label_) + (percent_ ? " (%)" : ""); }
  std::string operator()(double value) const { return fmt::format("{:.{}f}", value * factor(), decimals_); }
  std::string with_sign(double value) const {
    return (value < 0 ? "−" : value > 0 ? "+" : "±") + (*this)(std::abs(value));
  }

 private:
  static double middle(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[(values.size() - 1) / 2];
  }
  double factor() const { return percent_ ? 100 : 1; }

  bool percent_;
  std::string label_;
  int decimals_ = 3;
};

std::string p_text(double p) { return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p); }

// ---- The table ----

size_t failed_seeds(const Json& run) {
  return static_cast<size_t>(std::count_if(run["seeds"].begin(), run["seeds"].end(), [](const Json& seed) {
    return text_at(seed, "end") == "failed";
  }));
}

/// Whether every seed of a run failed. Such a run is never the best.
bool has_failed(const Json& run) { return !run["seeds"].empty() && failed_seeds(run) == run["seeds"].size(); }

std::string metric_cell(const Json& run, const MetricText& metric, bool best) {
  const auto mean = number_at(run["metric"], "mean");
  const size_t failed = failed_seeds(run), seeds = run["seeds"].size();
  if (!mean) return failed > 0 ? "failed" : "–";
  std::string text = metric(*mean);
  if (best) text = "**" + text + "**";
  if (const auto half = MetricText::half_width(run)) text += " ± " + metric(*half);
  if (failed > 0) text += fmt::format(" ({} of {} seeds failed)", failed, seeds);
  if (const int64_t n = n_not_learnt(run); n > 0) text += fmt::format(" ({} of {} never learnt)", n, seeds);
  return text;
}

/// A description of the row that the others are compared with.
std::string_view baseline_rule(const Json& runs) {
  const auto n = std::count_if(runs.begin(), runs.end(),
                               [](const Json& run) { return member(run, "baseline").is_null(); });
  return n > 1 ? "the first run with the same values of the grid" : "the first run";
}

std::string verdict_cell(const Json& run, const MetricText& metric) {
  const Json& versus = member(run, "versus_baseline");
  if (versus.is_null()) return member(run, "baseline").is_null() ? "baseline" : "–";
  const std::string verdict = text_at(versus, "verdict");
  std::string text = verdict == "unfair" ? "not fair" : verdict;
  if (verdict == "better" || verdict == "worse") text = "**" + text + "**";
  if (const auto difference = number_at(versus, "difference")) {
    text += ", " + metric.with_sign(*difference);
    const auto low = number_at(versus, "low"), high = number_at(versus, "high");
    if (low && high) text += fmt::format(" ({} to {})", metric.with_sign(*low), metric.with_sign(*high));
  }
  if (const auto p = number_at(versus, "p_corrected")) text += ", " + p_text(*p);
  if (const auto needed = number_at(versus, "seeds_needed"))
    text += fmt::format(", {:.0f} seeds would tell", *needed);
  return text;
}

/// A column of costs: its heading, the place of its number in a run, and whether less is better.
struct CostColumn {
  const char* title;
  const char* object;  // in the run, or nullptr for the run itself
  const char* key;
  const char* unit;
  bool less;
  std::optional<double> value(const Json& run) const {
    return number_at(object ? member(run, object) : run, key);
  }
};
constexpr CostColumn kColumns[] = {
    {"parameters", nullptr, "parameters", "", true},
    {"FLOPs / token", nullptr, "flops_per_token", "", true},
    {"training tokens/s", "speed", "train_tokens_per_second", "", false},
    {"reading tokens/s", "speed", "prompt_tokens_per_second", "", false},
    {"writing tokens/s", "speed", "decode_tokens_per_second", "", false},
    {"peak memory", nullptr, "peak_memory_bytes", "B", true},
};

/// The best value of the runs that did not fail; absent where all are equal.
template <typename Value>
std::optional<double> best_of(const Json& runs, Value&& value, bool less) {
  std::optional<double> low, high;
  for (const auto& run : runs) {
    const std::optional<double> found = value(run);
    if (!found || has_failed(run)) continue;
    low = std::min(low.value_or(*found), *found);
    high = std::max(high.value_or(*found), *found);
  }
  if (low == high) return std::nullopt;
  return less ? low : high;
}

std::string runs_table(const Json& results, const MetricText& metric) {
  const Json& runs = results["runs"];
  const std::string quantity = text_at(member(results, "match"), "quantity");
  const std::string matched = quantity == "flops" ? "flops_per_token" : quantity;
  Row head = {"run", metric.label(), "against the baseline"};
  std::vector<Row> rows;
  for (const auto& run : runs)
    rows.push_back({plain(text_at(run, "name")), metric_cell(run, metric, member(run, "clear_best") == true),
                    verdict_cell(run, metric)});
  for (const auto& column : kColumns) {
    const auto value = [&column](const Json& run) { return column.value(run); };
    if (std::none_of(runs.begin(), runs.end(), [&](const Json& run) { return value(run).has_value(); }))
      continue;
    // The matched quantity is equal for all runs, so none is the best.
    const auto best_value = column.key == matched ? std::nullopt : best_of(runs, value, column.less);
    const std::string best_text = amount(best_value, column.unit), unknown = amount(std::nullopt);
    Row cells;
    for (const auto& run : runs) cells.push_back(amount(value(run), column.unit));
    // All values that are written like the best one are best, except where all values are.
    const bool all = std::all_of(cells.begin(), cells.end(), [&](const std::string& cell) {
      return cell == best_text || cell == unknown;
    });
    head.emplace_back(column.title);
    for (size_t i = 0; i < runs.size(); ++i) {
      const bool is_best = best_value && !all && cells[i] == best_text && !has_failed(runs[i]);
      rows[i].push_back(is_best ? "**" + cells[i] + "**" : cells[i]);
    }
  }
  return table(head, rows, 1);
}

// ---- Curves ----

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

/// The metric on texts of lengths other than the training length.
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

// ---- Sizes ----

/// "0.80 (0.71 to 0.90)"
std::string estimate_text(const Json& estimate, int digits) {
  const auto value = number_at(estimate, "value"), low = number_at(estimate, "low"),
             high = number_at(estimate, "high");
  if (!value) return "–";
  auto text = fmt::format("{:.{}f}", *value, digits);
  if (low && high) text += fmt::format(" ({:.{}f} to {:.{}f})", *low, digits, *high, digits);
  return text;
}

std::string sizes(const Json& results) {
  const Json& fit = member(results, "sizes");
  if (!fit.is_object()) return "";
  std::vector<Row> rows;
  for (const auto& variant : fit["variants"])
    rows.push_back({plain(text_at(variant, "name")), estimate_text(member(variant, "exponent"), 4),
                    estimate_text(member(variant, "compute_ratio"), 3)});
  auto text = fmt::format(
      "## Sizes\n\nFits of {} = A · FLOPs^(-exponent) over the sizes and seeds, with 95 % "
      "intervals. The compute is that for the same loss as the first variant, from lines with "
      "the common exponent {}.",
      plain(text_at(fit, "loss")), estimate_text(member(fit, "exponent"), 4));
  if (const auto p = number_at(fit, "p_equal_exponents"))
    text += fmt::format(" Equal exponents: {}.", p_text(*p));
  return text + "\n\n" + table({"variant", "exponent", "compute"}, rows, 1) + "\n";
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
    const bool at_edge = member(variant, "at_edge") == true;
    Row row = {plain(text_at(variant, "name")), plain(chosen) + (at_edge ? " (edge of the grid)" : "")};
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
      "## Tuning\n\nEach run chose its values by short trainings with {:g} % of the budget and other "
      "seeds. {} of each candidate:\n\n{}\n",
      100 * number_at(results["tuning"], "share").value_or(0), metric.label(), table(head, rows, 2));
}

// ---- Configuration, method, notices ----

std::string differences(const Json& results) {
  const Json& keys = member(results, "differences");
  const Json& runs = results["runs"];
  if (!keys.is_array() || keys.empty() || runs.size() < 2) return "";
  const auto value = [](const Json& run, const Json& key) {
    return code(text_at(member(run, "config"), key.get<std::string>().c_str()));
  };
  Row head = {"key"};
  std::vector<Row> rows;
  if (runs.size() <= kMostColumns) {
    for (const auto& run : runs) head.push_back(plain(text_at(run, "name")));
    for (const auto& key : keys) {
      rows.push_back({code(key.get<std::string>())});
      for (const auto& run : runs) rows.back().push_back(value(run, key));
    }
  } else {
    head = {"run"};
    for (const auto& key : keys) head.push_back(code(key.get<std::string>()));
    for (const auto& run : runs) {
      rows.push_back({plain(text_at(run, "name"))});
      for (const auto& key : keys) rows.back().push_back(value(run, key));
    }
  }
  return "## What differs\n\nOnly the keys that differ between runs.\n\n" + table(head, rows, head.size()) +
         "\n";
}

std::string budget_text(const Json& budget) {
  const auto value = number_at(budget, "amount");
  const std::string kind = text_at(budget, "kind");
  if (!value) return "";
  if (kind == "flops") return amount(value, "FLOP");
  if (kind == "steps") return fmt::format("{:.0f} {}", *value, *value == 1 ? "step" : "steps");
  return amount(value) + " " + kind;
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
  add("Budget of a run", budget_text(member(results, "budget")));
  std::vector<std::string> seeds;
  for (const auto& seed : results["seeds"]) seeds.push_back(seed.dump());
  add("Seeds", fmt::format("{}", fmt::join(seeds, ", ")));
  if (const Json& match = member(results, "match"); match.is_object())
    add("Matched",
        fmt::format("{} at {}, within {:.1f} %", plain(text_at(match, "quantity")),
                    amount(number_at(match, "target")), 100 * number_at(match, "spread").value_or(0)));
  if (results["runs"].size() > 1 && results["seeds"].size() > 1)
    add("Verdicts",
        fmt::format("paired t-test over the seeds against {}, p corrected by Holm's method, at p < 0.05",
                    baseline_rule(results["runs"])));
  if (const auto margin = number_at(results, "margin"))
    add("Same", fmt::format("surely within {:g} {} of the baseline (two one-sided t-tests)", 100 * *margin,
                            member(metric, "percent") == true ? "points" : "%"));
  if (const Json& power = member(results, "power"); power.is_object()) {
    auto text = fmt::format(
        "with {} seeds and {} tests, a difference of {:g} standard deviations of a run is "
        "found with a probability of {:.0f} %",
        power["seeds"].dump(), power["tests"].dump(), number_at(power, "deviations").value_or(0),
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
  for (const auto& [key, name] :
       {std::pair{"transformer_zoo", "transformer-zoo"}, {"libtorch", "LibTorch"}, {"compiler", "compiler"}})
    if (const auto version = text_at(versions, key); !version.empty())
      made_with.push_back(fmt::format("{} {}", name, plain(version)));
  add("Made with", fmt::format("{}", fmt::join(made_with, ", ")));
  return fmt::format("## How it was measured\n\n{}\n\n", fmt::join(items, "\n"));
}

std::string notices(const Json& results) {
  std::string text;
  if (const Json& list = member(results, "notices"); list.is_array())
    for (const auto& notice : list)
      text += fmt::format("- **{}**: {}\n", plain(text_at(notice, "kind")), plain(text_at(notice, "text")));
  return text.empty() ? "" : text + "\n";
}

}  // namespace

std::string report_markdown(const Json& results) {
  check_results(results);
  const MetricText metric(results);
  const std::string title = text_at(results, "title"), folklore = text_at(results, "folklore"),
                    measured = text_at(results, "measured"), command = text_at(results, "command");
  std::string page = fmt::format("# {}\n\n", plain(title.empty() ? text_at(results, "name") : title));
  if (!folklore.empty()) page += fmt::format("**What people say.** {}\n\n", plain(folklore));
  if (!measured.empty()) page += fmt::format("**What was measured.** {}\n\n", plain(measured));
  page += notices(results);
  page += runs_table(results, metric) + "\n";
  page += curves(results, metric) + lengths(results, metric) + sizes(results) + tuning(results, metric) +
          differences(results) + facts(results);
  if (!command.empty()) page += fmt::format("```\n{}\n```\n", command);
  return page;
}

}  // namespace zoo
