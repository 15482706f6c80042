#pragma once
// A comparison to look at: one HTML file that needs nothing else, neither a network nor a library.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The page of a results.json (docs/comparison.md): tables, learning curves, quality against cost, samples,
/// attention. Sections for which there is no data are left out. The element with id "data" holds what is
/// drawn, in the fields of results.json. To keep a page of 200 runs below 10 MB, curves are thinned and only
/// those keys of the configurations stay that differ; where samples and attention maps do not all fit, the
/// first run and the best ones keep theirs: the page says how many have none, as `left_out` in its data does.
/// Throws DataError where the document is not what docs/comparison.md describes.
std::string report_page(const nlohmann::ordered_json& results);

}  // namespace zoo
