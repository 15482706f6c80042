#pragma once
// Text, numbers and tables in GitHub's Markdown, for report_markdown.cpp.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pages/json.h"

namespace zoo::markdown {

/// Text on one line with all markup escaped, also for a table.
std::string plain(std::string_view text);

/// Text as code in a cell of a table.
std::string code(std::string_view text);

/// The target of a link to a file, whose name may have blanks.
std::string link_target(std::string_view path);

using Row = std::vector<std::string>;

/// The first `left` columns hold words, the others numbers.
std::string table(const Row& head, const std::vector<Row>& rows, size_t left);

/// 1234567 → "1.23 M"; `unit` follows.
std::string amount(std::optional<double> value, std::string_view unit = "");

/// "p = 0.012", "p < 0.001"
std::string p_text(double p);

/// Writes values of the metric: as a percentage or not, and all with the same number of decimals.
class MetricText {
 public:
  explicit MetricText(const Json& results);

  /// Half the interval of a run's mean.
  static std::optional<double> half_width(const Json& run);
  std::string label() const;
  std::string operator()(double value) const;
  std::string with_sign(double value) const;

 private:
  double factor() const { return percent_ ? 100 : 1; }

  bool percent_;
  std::string label_;
  int decimals_ = 3;
};

}  // namespace zoo::markdown
