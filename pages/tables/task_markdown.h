#pragma once
// A comparison over several tasks as Markdown.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// A table with a row for each variant and a column for each task, the verdicts, the means over all tasks,
/// and what the comparison lacks. Throws DataError where the document is not as docs/comparison.md describes.
std::string task_markdown(const nlohmann::ordered_json& results);

/// The same table of means and verdicts for a terminal, with columns of equal width.
std::string task_table(const nlohmann::ordered_json& results);

}  // namespace zoo
