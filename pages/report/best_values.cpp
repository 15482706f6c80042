#include "pages/report/best_values.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pages/report/report_document.h"

namespace zoo {
namespace {

struct Range {
  double low, high;
};

/// Numbers that differ by less are shown alike.
constexpr double kShownAlike = 1e-3;

std::optional<Range> range_of_count(std::optional<double> value) {
  if (!value) return std::nullopt;
  return Range{*value * (1 - kShownAlike / 2), *value * (1 + kShownAlike / 2)};
}

std::optional<Range> interval_of_metric(const Json& run) {
  const Json& metric = member(run, "metric");
  const auto low = number_at(metric, "low"), high = number_at(metric, "high");
  return low && high ? std::optional(Range{*low, *high}) : std::nullopt;
}

std::optional<Range> range_of_speed(const Json& run, const char* key) {
  const Json& range = member(member(member(run, "speed"), "ranges"), key);
  if (!range.is_array() || range.size() != 2 || !range[0].is_number() || !range[1].is_number())
    return std::nullopt;
  return Range{range[0], range[1]};
}

std::vector<double> seconds_of(const Json& run) {
  std::vector<double> values;
  for (const auto& seed : run["seeds"]) {
    const auto seconds = number_at(seed, "seconds");
    if (text_at(seed, "end") != "failed" && seconds) values.push_back(*seconds);
  }
  return values;
}

std::optional<Range> range_of_seconds(const Json& run) {
  const auto values = seconds_of(run);
  if (values.size() < 2) return std::nullopt;
  const auto [low, high] = std::ranges::minmax(values);
  return Range{low, high};
}

struct Column {
  std::string name;
  bool less;  // whether less is better
  std::function<std::optional<Range>(const Json& run)> range;
  /// Whether the run has a value, whose range may be unknown.
  std::function<bool(const Json& run)> has_value;
};

Column counted(const char* key) {
  return {.name = key,
          .less = true,
          .range = [key](const Json& run) { return range_of_count(number_at(run, key)); },
          .has_value = [key](const Json& run) { return number_at(run, key).has_value(); }};
}

Column speed(const char* key) {
  return {.name = std::string("speed.") + key,
          .less = false,
          .range = [key](const Json& run) { return range_of_speed(run, key); },
          .has_value = [key](const Json& run) { return number_at(member(run, "speed"), key).has_value(); }};
}

std::vector<Column> columns_of(const Json& results) {
  const std::string quantity = text_at(member(results, "match"), "quantity");
  std::vector<Column> columns;
  if (member(results, "fair") == true) {
    columns.push_back({.name = "metric",
                       .less = text_at(results["metric"], "better") == "lower",
                       .range = interval_of_metric,
                       .has_value = [](const Json& run) { return !member(run, "metric").is_null(); }});
  }
  if (quantity != "parameters") columns.push_back(counted("parameters"));
  if (quantity != "flops") columns.push_back(counted("flops_per_token"));
  columns.push_back(counted("peak_memory_bytes"));
  columns.push_back(
      {.name = "seconds", .less = true, .range = range_of_seconds, .has_value = [](const Json& run) {
         return !seconds_of(run).empty();
       }});
  for (const char* key : {"train_tokens_per_second", "prompt_tokens_per_second", "decode_tokens_per_second"})
    columns.push_back(speed(key));
  return columns;
}

/// The only run whose range lies on the better side of all others; nothing if there is none.
std::optional<size_t> best_of(const Json& runs, const Column& column) {
  const auto beats = [&](const Json& run, const Json& other) {
    if (has_failed(other) || !column.has_value(other)) return true;
    const auto ours = column.range(run), theirs = column.range(other);
    return ours && theirs && (column.less ? ours->high < theirs->low : ours->low > theirs->high);
  };
  int64_t n_values = 0;
  for (const auto& run : runs) n_values += !has_failed(run) && column.has_value(run);
  if (n_values < 2) return std::nullopt;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (has_failed(runs[i]) || !column.has_value(runs[i])) continue;
    size_t n_beaten = 0;
    for (size_t j = 0; j < runs.size(); ++j) n_beaten += j == i || beats(runs[i], runs[j]);
    if (n_beaten == runs.size()) return i;
  }
  return std::nullopt;
}

}  // namespace

void mark_best_values(Json& results) {
  auto& runs = results["runs"];
  for (auto& run : runs) run["best_in"] = Json::array();
  for (const auto& column : columns_of(results)) {
    if (const auto best = best_of(runs, column)) runs[*best]["best_in"].push_back(column.name);
  }
}

bool is_best_in(const Json& run, std::string_view column) {
  const Json& marks = member(run, "best_in");
  return marks.is_array() && std::ranges::any_of(marks, [&](const Json& mark) { return mark == column; });
}

}  // namespace zoo
