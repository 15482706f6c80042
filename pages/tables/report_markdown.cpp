#include "pages/tables/report_markdown.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pages/json.h"
#include "pages/tables/best_values.h"
#include "pages/tables/markdown_sections.h"
#include "pages/tables/markdown_text.h"
#include "pages/tables/report_document.h"

namespace zoo::markdown {
namespace {

constexpr size_t kMostColumns = 6;  // of runs side by side; more runs become rows

// ---- The table ----

size_t failed_seeds(const Json& run) {
  return static_cast<size_t>(std::count_if(run["seeds"].begin(), run["seeds"].end(), [](const Json& seed) {
    return text_at(seed, "end") == "failed";
  }));
}

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
  if (const auto p = p_of_verdict(versus)) text += ", " + p_text(*p);
  if (const auto agreeing = number_at(versus, "agreeing"); agreeing && !member(run, "ablation").is_null())
    text += fmt::format(", in {:.0f} of {:.0f} seeds", *agreeing, number_at(versus, "n").value_or(0));
  if (is_over_examples(versus))
    text += fmt::format(", {:.0f} {}", number_at(versus, "n").value_or(0), text_at(versus, "over"));
  if (const auto needed = number_at(versus, "seeds_needed"))
    text += fmt::format(", {:.0f} seeds would tell", *needed);
  return text;
}

/// A column of costs: its heading, in which {} stands for the unit of the task, and the place of its number
/// in a run.
struct CostColumn {
  const char* title;
  const char* object;  // in the run, or nullptr for the run itself
  const char* key;
  const char* unit;
  std::string name() const { return object ? fmt::format("{}.{}", object, key) : key; }
  std::optional<double> value(const Json& run) const {
    return number_at(object ? member(run, object) : run, key);
  }
};
constexpr CostColumn kColumns[] = {
    {"parameters", nullptr, "parameters", ""},
    {"FLOPs / {}", nullptr, "flops_per_token", ""},
    {"training {}s/s", "speed", "train_tokens_per_second", ""},
    {"prefill tokens/s", "speed", "prompt_tokens_per_second", ""},
    {"decode tokens/s", "speed", "decode_tokens_per_second", ""},
    {"peak memory", nullptr, "peak_memory_bytes", "B"},
};

std::string runs_table(const Json& results, const MetricText& metric) {
  const Json& runs = results["runs"];
  Row head = {"run", metric.label(), "against the baseline"};
  std::vector<Row> rows;
  for (const auto& run : runs)
    rows.push_back({plain(text_at(run, "name")), metric_cell(run, metric, is_best_in(run, "metric")),
                    verdict_cell(run, metric)});
  for (const auto& column : kColumns) {
    const auto value = [&column](const Json& run) { return column.value(run); };
    if (std::none_of(runs.begin(), runs.end(), [&](const Json& run) { return value(run).has_value(); }))
      continue;
    head.push_back(fmt::format(fmt::runtime(column.title), plain(unit_of(results))));
    for (size_t i = 0; i < runs.size(); ++i) {
      const auto cell = amount(value(runs[i]), column.unit);
      rows[i].push_back(is_best_in(runs[i], column.name()) ? "**" + cell + "**" : cell);
    }
  }
  return table(head, rows, 1);
}

// ---- The table of a grid ----

/// Mean and verdict of each variant (columns) at each point of the grid (rows); empty without a grid of
/// several variants.
std::string grid_table(const Json& results, const MetricText& metric) {
  const Json &grid = member(results, "grid"), &variants = member(results, "variants"),
             &runs = results["runs"];
  if (!grid.is_array() || grid.empty() || !variants.is_array() || variants.size() < 2) return "";
  Row head;
  for (const auto& key : grid) head.push_back(plain(text_at(key, "label")));
  for (const auto& variant : variants) head.push_back(plain(variant.get<std::string>()));
  std::vector<Row> rows;
  std::set<Json> seen;
  for (const auto& run : runs) {
    const Json& values = member(run, "grid");
    if (!seen.insert(values).second) continue;
    Row row;
    for (const auto& key : grid) row.push_back(plain(text_at(values, text_at(key, "key").c_str())));
    for (const auto& variant : variants) {
      const auto found = std::ranges::find_if(runs, [&](const Json& other) {
        return member(other, "grid") == values && member(other, "variant") == variant;
      });
      if (found == runs.end()) {
        row.emplace_back("–");
        continue;
      }
      const auto verdict = text_at(member(*found, "versus_baseline"), "verdict");
      row.push_back(metric_cell(*found, metric, is_best_in(*found, "metric")) +
                    (verdict.empty() ? "" : ", " + verdict));
    }
    rows.push_back(std::move(row));
  }
  return fmt::format("{} at each point of the grid:\n\n{}\n", metric.label(), table(head, rows, grid.size()));
}

// ---- Configuration, notices ----

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

std::string notices(const Json& results) {
  std::string text;
  if (const Json& list = member(results, "notices"); list.is_array())
    for (const auto& notice : list)
      text += fmt::format("- **{}**: {}\n", plain(text_at(notice, "kind")), plain(text_at(notice, "text")));
  return text.empty() ? "" : text + "\n";
}

}  // namespace
}  // namespace zoo::markdown

namespace zoo {

std::string report_markdown(const Json& results) {
  using namespace markdown;
  check_results(results);
  const MetricText metric(results);
  const std::string title = text_at(results, "title"), folklore = text_at(results, "folklore"),
                    measured = text_at(results, "measured"), command = text_at(results, "command");
  std::string page = fmt::format("# {}\n\n", plain(title.empty() ? text_at(results, "name") : title));
  if (!folklore.empty()) page += fmt::format("**What people say.** {}\n\n", plain(folklore));
  if (!measured.empty()) page += fmt::format("**What was measured.** {}\n\n", plain(measured));
  if (const auto note = text_at(results, "note"); !note.empty())
    page += fmt::format("**Note.** {}\n\n", plain(note));
  page += grid_table(results, metric) + notices(results);
  page += runs_table(results, metric) + "\n";
  page += effects(results, metric) + curves(results, metric) + lengths(results, metric) + slices(results) +
          mistakes(results) + experts(results) + sizes(results) + tuning(results, metric) +
          differences(results) + gaps(results) + facts(results);
  if (!command.empty()) page += fmt::format("```\n{}\n```\n", command);
  return page;
}

}  // namespace zoo
