#pragma once
// A comparison as a Markdown page for a repository.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The report of a results.json (docs/comparison.md) in GitHub's Markdown: the folklore, the findings, the
/// table, the learning curves, the differences between the configurations, and the command that repeats it.
/// The same document gives the same text. Throws DataError where the document is not as docs/comparison.md
/// describes.
std::string report_markdown(const nlohmann::ordered_json& results);

}  // namespace zoo
