#pragma once
// The results of a comparison as a table for a terminal.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

enum class TableStyle {
  plain,    // for files and pipes
  terminal  // values that are the best beyond the noise in bold
};

/// One row per run: metric ± interval, verdict against the baseline, size, cost and speed. `results` is as in
/// docs/comparison.md. Columns without any number are left out.
std::string results_table(const nlohmann::ordered_json& results, TableStyle style);

/// 1.7e9 → "1.70 G"
std::string with_prefix(double value);

}  // namespace zoo
