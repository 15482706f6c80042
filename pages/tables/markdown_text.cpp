#include "pages/tables/markdown_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pages/tables/report_document.h"
#include "pages/tables/table.h"

namespace zoo::markdown {
namespace {

double middle(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[(values.size() - 1) / 2];
}

}  // namespace

std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\`*_<>[]|#~$").find(c) != std::string_view::npos) result += '\\';
    result += c == '\n' || c == '\r' ? ' ' : c;
  }
  return result;
}

std::string code(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '`' ? '\'' : c == '\n' || c == '\r' ? ' ' : c;
  }
  return result.empty() ? "–" : "`" + result + "`";
}

std::string link_target(std::string_view path) {
  std::string result = "<";
  for (const char c : path) {
    if (c == '<' || c == '>' || c == '\\') result += '\\';
    result += c;
  }
  return result + ">";
}

std::string table(const Row& head, const std::vector<Row>& rows, size_t left) {
  std::string result = fmt::format("| {} |\n|", fmt::join(head, " | "));
  for (size_t i = 0; i < head.size(); ++i) result += i < left ? "---|" : "---:|";
  result += '\n';
  for (const auto& row : rows) result += fmt::format("| {} |\n", fmt::join(row, " | "));
  return result;
}

std::string amount(std::optional<double> value, std::string_view unit) {
  if (!value) return "–";
  std::string text = with_prefix(*value) + std::string(unit);
  if (text.back() == ' ') text.pop_back();
  return text;
}

std::string p_text(double p) { return p < 0.001 ? "p < 0.001" : fmt::format("p = {:.2g}", p); }

MetricText::MetricText(const Json& results)
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

std::optional<double> MetricText::half_width(const Json& run) {
  const auto low = number_at(run["metric"], "low"), high = number_at(run["metric"], "high");
  if (!low || !high) return std::nullopt;
  return (*high - *low) / 2;
}

std::string MetricText::label() const { return plain(label_) + (percent_ ? " (%)" : ""); }

std::string MetricText::operator()(double value) const {
  return fmt::format("{:.{}f}", value * factor(), decimals_);
}

std::string MetricText::with_sign(double value) const {
  return (value < 0 ? "−" : value > 0 ? "+" : "±") + (*this)(std::abs(value));
}

}  // namespace zoo::markdown
