#pragma once
// A page of a comparison over several tasks: one HTML file that needs neither a network nor a library.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The page of the results of several tasks (docs/comparison.md): a table with a column for each task, a
/// chart of the standardised results, links to the pages of the tasks, and what the comparison lacks. Throws
/// DataError where the document is not as docs/comparison.md describes.
std::string tasks_page(const nlohmann::ordered_json& results);

}  // namespace zoo
