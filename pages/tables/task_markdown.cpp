#include "pages/tables/task_markdown.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "io/text_width.h"
#include "pages/json.h"
#include "pages/tables/markdown_sections.h"
#include "pages/tables/markdown_text.h"
#include "pages/tables/report_document.h"
#include "pages/tables/task_document.h"

namespace zoo {
namespace {

using markdown::MetricText;
using markdown::Row;

/// The row of `name`; null where there is none.
const Json& row_of(const Json& rows, const std::string& name) {
  static const Json null;
  const auto found =
      std::ranges::find_if(rows, [&](const Json& row) { return text_at(row, "name") == name; });
  return found == rows.end() ? null : *found;
}

std::string verdict_of(const Json& row) {
  const auto verdict = text_at(member(row, "versus_baseline"), "verdict");
  return verdict == "undecided" ? "not told apart" : verdict;
}

/// "97.1 ± 0.4, worse"
std::string value_cell(const Json& row, const MetricText& metric) {
  const auto mean = number_at(member(row, "metric"), "mean");
  if (!mean) return row.is_null() ? "–" : "failed";
  auto text = metric(*mean);
  if (const auto half = MetricText::half_width(row)) text += " ± " + metric(*half);
  if (const auto verdict = verdict_of(row); !verdict.empty()) text += ", " + verdict;
  return text;
}

std::string signed_text(double value, int decimals) {
  return fmt::format("{}{:.{}f}", value < 0 ? "−" : "+", std::abs(value), decimals);
}

std::string overall_cell(const Json& row) {
  const auto mean = number_at(member(row, "standardised"), "mean");
  if (!mean) return "–";
  auto text = signed_text(*mean, 2);
  if (const auto verdict = verdict_of(row); !verdict.empty()) {
    text += ", " + verdict;
    const Json& versus = row["versus_baseline"];
    const auto difference = number_at(versus, "difference"), low = number_at(versus, "low"),
               high = number_at(versus, "high"), p = p_of_verdict(versus);
    if (difference) text += " " + signed_text(*difference, 2);
    if (low && high) text += fmt::format(" ({} to {})", signed_text(*low, 2), signed_text(*high, 2));
    if (p) text += ", " + markdown::p_text(*p);
  }
  return text;
}

/// The head and the rows of the table, with the noise as its last row. `name`: how names are written.
std::pair<Row, std::vector<Row>> table_of(const Json& results, std::string (*name)(std::string_view)) {
  Row head = {"variant"}, noise = {"noise"};
  std::vector<Row> rows;
  for (const auto& row : results["overall"]) rows.push_back({name(text_at(row, "name"))});
  for (const auto& task : results["tasks"]) {
    if (member(task, "error").is_string()) {
      head.push_back(name(text_at(task, "name")));
      for (auto& row : rows) row.emplace_back("failed");
      noise.emplace_back("–");
      continue;
    }
    const MetricText metric(task);
    head.push_back(name(text_at(task, "name")) + ": " + metric.label());
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].push_back(value_cell(row_of(task["runs"], text_at(results["overall"][i], "name")), metric));
    const auto difference = number_at(member(task, "noise"), "difference");
    noise.push_back(difference ? "±" + metric(*difference) : "–");
  }
  head.insert(head.end(), {"mean rank", "mean of standardised results"});
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& row = results["overall"][i];
    const auto rank = number_at(row, "rank");
    rows[i].push_back(rank ? fmt::format("{:.1f}", *rank) : "–");
    rows[i].push_back(overall_cell(row));
  }
  noise.insert(noise.end(), {"", ""});
  rows.push_back(std::move(noise));
  return {std::move(head), std::move(rows)};
}

}  // namespace

std::string task_markdown(const Json& results) {
  using markdown::plain;
  check_task_results(results);
  const auto title = text_at(results, "title");
  auto page = fmt::format("# {}\n\n", plain(title.empty() ? text_at(results, "name") : title));
  const std::pair<const char*, const char*> claims[] = {
      {"folklore", "What people say."}, {"measured", "What was measured."}, {"note", "Note."}};
  for (const auto& [key, head] : claims) {
    if (const auto text = text_at(results, key); !text.empty())
      page += fmt::format("**{}** {}\n\n", head, plain(text));
  }
  const auto [head, rows] = table_of(results, plain);
  const auto n_tests = number_at(results, "tests").value_or(0);
  page += markdown::table(head, rows, 1) +
          fmt::format(
              "\nVerdicts against the baseline, by paired t-tests over seeds; p is corrected for {} "
              "of the tasks, and for those over all tasks. Noise: a difference that seeds alone "
              "show once in twenty times.\n",
              n_tests == 1 ? "the one test" : fmt::format("all {} tests", n_tests));
  for (const auto& task : results["tasks"]) {
    const auto name = plain(text_at(task, "name"));
    if (const auto error = text_at(task, "error"); !error.empty())
      page += fmt::format("\n**{} failed.** {}\n", name, plain(error));
    else
      page += fmt::format("\n**{}.** {} ([its report]({}))\n", name, plain(text_at(task, "measured")),
                          markdown::link_target(text_at(task, "name") + "/report.md"));
  }
  page += "\n" + markdown::gaps(results);
  if (const auto command = text_at(results, "command"); !command.empty())
    page += fmt::format("```\n{}\n```\n", command);
  return page;
}

std::string task_table(const Json& results) {
  check_task_results(results);
  const auto [head, rows] = table_of(results, [](std::string_view text) { return std::string(text); });
  std::vector<std::string> lines(rows.size() + 1);
  for (size_t c = 0; c < head.size(); ++c) {
    size_t width = width_of(head[c]);
    for (const auto& row : rows) width = std::max(width, width_of(row[c]));
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto& text = i == 0 ? head[c] : rows[i - 1][c];
      lines[i] += (c > 0 ? "  " : "") + text + std::string(width - width_of(text), ' ');
    }
  }
  std::string text;
  for (auto& line : lines) {
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  }
  return text;
}

}  // namespace zoo
