#include "pages/tables/best_values.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "pages/tables/report_document.h"

namespace zoo {
namespace {

enum class Best { lowest, highest };

struct Range {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};
/// One value per run: absent where it has none, the range of all numbers where its range is unknown.
using Ranges = std::vector<std::optional<Range>>;

Range known_range(std::optional<double> low, std::optional<double> high) {
  return low && high ? Range{*low, *high} : Range();
}

/// Numbers that differ by less are shown alike.
constexpr double kShownAlike = 1e-3;

std::optional<Range> range_of_count(const Json& run, const char* key) {
  const auto value = number_at(run, key);
  if (!value) return std::nullopt;
  return Range{*value * (1 - kShownAlike / 2), *value * (1 + kShownAlike / 2)};
}

std::optional<Range> range_of_metric(const Json& run) {
  const Json& metric = member(run, "metric");
  if (metric.is_null()) return std::nullopt;
  return known_range(number_at(metric, "low"), number_at(metric, "high"));
}

std::optional<Range> range_of_speed(const Json& run, const char* key) {
  const Json &speed = member(run, "speed"), &range = member(member(speed, "ranges"), key);
  if (!number_at(speed, key)) return std::nullopt;
  const auto bound = [&](size_t i) {
    return range.is_array() && range.size() == 2 && range[i].is_number()
               ? std::optional(range[i].get<double>())
               : std::nullopt;
  };
  return known_range(bound(0), bound(1));
}

std::optional<Range> range_of_seconds(const Json& run) {
  std::vector<double> values;
  for (const auto& seed : run["seeds"]) {
    const auto seconds = number_at(seed, "seconds");
    if (text_at(seed, "end") != "failed" && seconds) values.push_back(*seconds);
  }
  if (values.size() < 2) return values.empty() ? std::nullopt : std::optional(Range());
  const auto [low, high] = std::ranges::minmax(values);
  return Range{low, high};
}

/// The only run whose range lies below all others; nothing if there is none.
std::optional<size_t> lowest(const Ranges& ranges) {
  const auto is_value = [](const auto& range) { return range.has_value(); };
  if (std::ranges::count_if(ranges, is_value) < 2) return std::nullopt;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto is_beaten = [&](const auto& other) {
      return &other == &ranges[i] || !other || ranges[i]->high < other->low;
    };
    if (ranges[i] && std::ranges::all_of(ranges, is_beaten)) return i;
  }
  return std::nullopt;
}

}  // namespace

void mark_best_values(Json& results) {
  auto& runs = results["runs"];
  for (auto& run : runs) run["best_in"] = Json::array();
  const auto mark = [&](const std::string& column, Best best, const auto& range_of) {
    Ranges ranges;
    for (const auto& run : runs) {
      const bool takes_part = !has_failed(run) && !run.contains("ablation");
      ranges.push_back(takes_part ? range_of(run) : std::nullopt);
      if (auto& range = ranges.back(); range && best == Best::highest) range = {-range->high, -range->low};
    }
    if (const auto i = lowest(ranges)) runs[*i]["best_in"].push_back(column);
  };
  if (member(results, "fair") == true)
    mark("metric", text_at(results["metric"], "better") == "lower" ? Best::lowest : Best::highest,
         range_of_metric);
  const auto matched = text_at(member(results, "match"), "quantity");
  for (const char* key : {"parameters", "flops_per_token", "peak_memory_bytes"}) {
    if (matched.empty() || !std::string_view(key).starts_with(matched))
      mark(key, Best::lowest, [&](const Json& run) { return range_of_count(run, key); });
  }
  mark("seconds", Best::lowest, range_of_seconds);
  for (const char* key : {"train_tokens_per_second", "prompt_tokens_per_second", "decode_tokens_per_second"})
    mark(std::string("speed.") + key, Best::highest,
         [&](const Json& run) { return range_of_speed(run, key); });
}

bool is_best_in(const Json& run, std::string_view column) {
  const Json& marks = member(run, "best_in");
  return marks.is_array() && std::ranges::any_of(marks, [&](const Json& mark) { return mark == column; });
}

}  // namespace zoo
