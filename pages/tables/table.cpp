#include "pages/tables/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "io/text_width.h"
#include "pages/json.h"
#include "pages/tables/best_values.h"
#include "pages/tables/report_document.h"

namespace zoo {
namespace {

struct Cell {
  std::string text;
  std::optional<double> value = {};
  bool is_best = false;
};

constexpr size_t kLongName = 200;  // bytes

struct TableColumn {
  std::string title;
  std::string place = {};        // see is_best_in(); empty for words
  std::vector<Cell> cells = {};  // one per run
};

std::optional<double> number(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

Cell metric_cell(const Json& run, bool percent) {
  const auto& metric = run["metric"];
  if (metric.is_null()) return {"failed"};
  const double factor = percent ? 100 : 1;
  const int digits = percent ? 1 : 4;
  const double mean = metric["mean"];
  std::string text = fmt::format("{:.{}f}", factor * mean, digits);
  if (const auto high = number(metric["high"]))
    text += fmt::format(" ± {:.{}f}", factor * (*high - mean), digits);
  text += percent ? " %" : "";
  if (const int64_t n = n_not_learnt(run); n > 0)
    text += fmt::format(" ({} of {} never learnt)", n, run["seeds"].size());
  return {.text = text, .value = mean};
}

Cell verdict_cell(const Json& run) {
  const Json& versus = run["versus_baseline"];
  if (versus.is_null()) return {""};
  const auto verdict = versus["verdict"].get<std::string>();
  const auto p = p_of_verdict(versus);
  if (!p) return {verdict};
  auto text = *p < 0.001 ? fmt::format("{}, p < 0.001", verdict) : fmt::format("{}, p = {:.3f}", verdict, *p);
  if (run.contains("ablation") && versus.contains("agreeing"))
    text += fmt::format(", in {} of {} seeds", versus["agreeing"].get<int64_t>(), versus["n"].get<int64_t>());
  if (const auto needed = number(versus["seeds_needed"]))
    text += fmt::format(", needs {:.0f} seeds", *needed);
  return {text};
}

Cell amount_cell(const std::optional<double>& value, std::string_view unit = "") {
  return value ? Cell{with_prefix(*value) + std::string(unit), value} : Cell{"–"};
}

/// Over the seeds that did not fail.
std::optional<double> mean_seconds(const Json& run) {
  double sum = 0;
  int64_t count = 0;
  for (const auto& seed : run["seeds"]) {
    const auto seconds = number(seed["seconds"]);
    if (seed["end"] == "failed" || !seconds) continue;
    sum += *seconds;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::optional<double> speed_of(const Json& run, const char* key) {
  return run["speed"].is_object() ? number(run["speed"][key]) : std::nullopt;
}

std::vector<TableColumn> table_columns(const Json& results) {
  const auto& metric = results["metric"];
  const bool percent = metric["percent"];
  const std::string unit = unit_of(results);
  std::vector<TableColumn> columns{
      {.title = ""},
      {.title = metric["label"], .place = "metric"},
      {.title = "against the baseline"},
      {.title = "parameters", .place = "parameters"},
      {.title = "FLOPs/" + unit, .place = "flops_per_token"},
      {.title = "memory", .place = "peak_memory_bytes"},
      {.title = "training", .place = "seconds"},
      {.title = fmt::format("train {}/s", unit == "token" ? "tok" : unit + "s"),
       .place = "speed.train_tokens_per_second"},
      {.title = "prefill tok/s", .place = "speed.prompt_tokens_per_second"},
      {.title = "decode tok/s", .place = "speed.decode_tokens_per_second"},
  };
  for (const auto& run : results["runs"]) {
    const auto seconds = mean_seconds(run);
    size_t i = 0;
    const auto add = [&](Cell cell) {
      auto& column = columns[i++];
      cell.is_best = is_best_in(run, column.place);
      column.cells.push_back(std::move(cell));
    };
    add({excerpt(run["name"].get<std::string>(), kLongName)});
    add(metric_cell(run, percent));
    add(verdict_cell(run));
    add(amount_cell(number(run["parameters"])));
    add(amount_cell(number(run["flops_per_token"])));
    add(amount_cell(number(run["peak_memory_bytes"]), "B"));
    add(seconds ? Cell{fmt::format("{:.0f} s", *seconds), seconds} : Cell{"–"});
    add(amount_cell(speed_of(run, "train_tokens_per_second")));
    add(amount_cell(speed_of(run, "prompt_tokens_per_second")));
    add(amount_cell(speed_of(run, "decode_tokens_per_second")));
  }
  // A column without any number is left out, but not the one that says that all runs failed.
  std::erase_if(columns, [](const TableColumn& column) {
    return !column.place.empty() && column.place != "metric" &&
           std::none_of(column.cells.begin(), column.cells.end(),
                        [](const Cell& cell) { return cell.value; });
  });
  return columns;
}

}  // namespace

std::string with_prefix(double value) {
  constexpr std::array<const char*, 6> prefixes{"", "k", "M", "G", "T", "P"};
  size_t i = 0;
  for (; std::abs(value) >= 999.5 && i + 1 < prefixes.size(); ++i) value /= 1000;
  return i == 0 ? fmt::format("{:.0f} ", value) : fmt::format("{:.3g} {}", value, prefixes[i]);
}

std::string results_table(const nlohmann::ordered_json& results, TableStyle style) {
  const auto columns = table_columns(results);
  const size_t n_rows = results["runs"].size();
  std::vector<std::string> lines(n_rows + 1);
  for (size_t c = 0; c < columns.size(); ++c) {
    const auto& column = columns[c];
    size_t width = width_of(column.title);
    for (const auto& cell : column.cells) width = std::max(width, width_of(cell.text));
    const bool left = column.place.empty();  // words, not numbers
    for (size_t row = 0; row <= n_rows; ++row) {
      const auto& text = row == 0 ? column.title : column.cells[row - 1].text;
      const std::string gap(width - width_of(text), ' ');
      const bool bold = style == TableStyle::terminal && row > 0 && column.cells[row - 1].is_best;
      const auto shown = bold ? fmt::format("\033[1m{}\033[0m", text) : text;
      lines[row] += (c > 0 ? "  " : "") + (left ? shown + gap : gap + shown);
    }
  }
  std::string table;
  for (auto& line : lines) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    table += line + "\n";
  }
  return table;
}

}  // namespace zoo
