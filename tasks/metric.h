#pragma once
// Numbers that measure the quality of a model.

#include <array>
#include <string>
#include <string_view>

namespace zoo {

/// Which of two values of a metric is the better one.
enum class Better { lower, higher };
constexpr auto config_names(Better) { return std::to_array<std::string_view>({"lower", "higher"}); }

/// A metric that a task measures.
struct Metric {
  std::string key;    // as in Task::evaluate()
  std::string label;  // for people
  Better better = Better::lower;
  bool percent = false;  // shown as a percentage
  /// Another key under which some tasks measure the same; "" = none.
  std::string other_key = {};

  bool is_better(double a, double b) const { return better == Better::lower ? a < b : a > b; }
};

}  // namespace zoo
