#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/named_enum.h"
#include "pages/causes/cause_views.h"
#include "pages/json.h"

namespace zoo {
namespace {

struct NamedValue {
  std::string name;
  double value;
};

/// The items with the largest numbers first.
Json sorted_bars(std::vector<NamedValue> items) {
  std::ranges::stable_sort(items, std::ranges::greater(),
                           [](const NamedValue& item) { return std::abs(item.value); });
  Json list = Json::array();
  for (const auto& [name, value] : items) list.push_back({{"name", name}, {"value", value}});
  return list;
}

/// What an integral misses, to four digits.
std::string missed_text(double value) {
  const auto text = fmt::format("{:+.4f}", value);
  return text.substr(1) == "0.0000" ? "nothing" : text;
}

std::string summary_of(const AttributionReport& report) {
  auto text = describe(report);
  text.front() = 'T';
  if (report.options.by == AttributionBy::gradient_input)
    return fmt::format("{}. It is {:.4f}, and the attributions add up to {:.4f}.", text, report.score,
                       report.sum());
  return fmt::format(
      "{}. It is {:.4f}, and {:.4f} for the baseline. The attributions add up to {:.4f}: the integral misses "
      "{}.",
      text, report.score, report.baseline_score, report.sum(), missed_text(report.completeness_error()));
}

std::string title_of(const AttributionReport& report) {
  const auto& question = report.question;
  if (report.picture) return std::filesystem::path(question.input).filename().string();
  return question.target.empty() ? question.input : question.input + " → " + question.target;
}

constexpr auto kNote = "Blue adds to the answer, and red takes from it.";

Json text_json(const std::string& title, const std::vector<std::string>& tokens,
               const std::vector<double>& values, double most) {
  return {{"title", title}, {"note", kNote}, {"tokens", tokens}, {"values", values}, {"most", most}};
}

}  // namespace

Json attribution_view(const AttributionReport& report) {
  const auto& question = report.question;
  Json view{{"kind", "Attribution"},         {"name", report.name},      {"title", title_of(report)},
            {"summary", summary_of(report)}, {"grids", Json::array()},   {"bars", Json::array()},
            {"texts", Json::array()},        {"pictures", Json::array()}};
  double most = 0;
  for (const auto* const values : {&report.source, &report.target})
    for (const double value : *values) most = std::max(most, std::abs(value));
  std::vector<NamedValue> items;
  if (const auto& picture = report.picture) {
    Json rows = Json::array();
    for (int64_t row = 0; row < picture->rows; ++row) {
      auto& values = rows.emplace_back(Json::array());
      for (int64_t column = 0; column < picture->columns; ++column) {
        const double value = report.source[static_cast<size_t>(row * picture->columns + column)];
        values.push_back(value);
        items.push_back({.name = fmt::format("row {} column {}", row, column), .value = value});
      }
    }
    const auto part = [](const Box& box) { return Json{box.x, box.y, box.width, box.height}; };
    view["pictures"].push_back({{"title", "Parts of the picture"},
                                {"note", kNote},
                                {"rows", picture->rows},
                                {"columns", picture->columns},
                                {"values", std::move(rows)},
                                {"part", picture->covered ? part(*picture->covered) : Json()}});
  } else {
    const bool two_sides = !report.target.empty();
    const auto add = [&](const std::string& title, const std::vector<std::string>& tokens,
                         const std::vector<double>& values) {
      if (values.empty()) return;
      view["texts"].push_back(text_json(title, tokens, values, most));
      for (size_t i = 0; i < values.size(); ++i)
        items.push_back({.name = fmt::format("{}{} “{}”", two_sides ? title + " " : "", i, tokens.at(i)),
                         .value = values[i]});
    };
    add(two_sides ? "Source" : "Tokens", question.source_tokens, report.source);
    add("Target", report.target_names, report.target);
  }
  view["bars"].push_back({{"title", "What adds or takes most"},
                          {"note", fmt::format("They add up to {:.4f}.", report.sum())},
                          {"items", sorted_bars(std::move(items))}});
  return view;
}

}  // namespace zoo
