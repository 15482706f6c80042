#pragma once
// A comparison as a page of a repository.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The study of a results.json (docs/comparison.md) in GitHub's Markdown: what is said, what was measured,
/// the table, how the curves went, where the configurations differ, and how to repeat it. The same document
/// gives the same text. Throws DataError where the document is not what docs/comparison.md describes.
std::string report_markdown(const nlohmann::ordered_json& results);

}  // namespace zoo
