#pragma once
// A page of a comparison: one HTML file that needs neither a network nor a library.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// The page of a results.json (docs/comparison.md): tables, learning curves, quality against cost, samples,
/// attention. Sections without data are left out. The element with id "data" holds the drawn data, in the
/// fields of results.json. To keep a page of 200 runs below 10 MB, curves are thinned and configurations keep
/// only the keys that differ. Where samples or attention maps do not all fit, the first run and the best ones
/// keep theirs; the page and `left_out` in its data say how many runs have none.
/// Throws DataError where the document is not as docs/comparison.md describes.
std::string report_page(const nlohmann::ordered_json& results);

}  // namespace zoo
