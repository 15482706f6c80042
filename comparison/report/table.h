#pragma once
// The results of a comparison as a table for a terminal.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

enum class TableStyle {
  plain,    // for files and pipes
  terminal  // the best of each column in bold
};

/// One row a run: metric ± interval, verdict against the first, size, cost and speed. `results` as in
/// docs/comparison.md. Columns that no run has a number for are left out.
std::string results_table(const nlohmann::ordered_json& results, TableStyle style);

/// 1.7e9 → "1.70 G"
std::string with_prefix(double value);

}  // namespace zoo
