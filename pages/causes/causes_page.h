#pragma once
// Pages that say which part of a model, or of its input, does what. Each is one file that needs nothing else.

#include <optional>
#include <string>

#include "analysis/causes/reports_json.h"

namespace zoo {

/// The views of cause_views.h as pages.
std::string lens_page(const LensReport& report, const std::optional<LensContributions>& contributions);
std::string ablation_page(const AblationReport& report);
std::string patch_page(const PatchReport& report);
/// With the picture, if the report is of one. Throws DataError if its file cannot be read.
std::string attribution_page(const AttributionReport& report);

}  // namespace zoo
