#pragma once
// Writes results.json, from which the table and the reports are made. docs/comparison.md describes it.

#include "comparison/findings/results.h"
#include "pages/json.h"

namespace zoo {

/// The document of results, with the machine, the versions and the time of this call. Bytes that are not
/// UTF-8, which a byte model may write, are U+FFFD in it, and numbers that are not finite are null.
Json results_json(const ComparisonResults& results);

}  // namespace zoo
