#pragma once
// Pages that say which part of a model does what. Each is one file that needs nothing else.

#include <optional>
#include <string>

#include "analysis/causes/reports_json.h"

namespace zoo {

/// What the model would say after each layer at each place, and the parts of a logit.
std::string lens_page(const LensReport& report, const std::optional<LensContributions>& contributions);

/// The change of the loss without each head and each sub-layer.
std::string ablation_page(const AblationReport& report);

/// What each patch recovers: by head, and by layer and position.
std::string patch_page(const PatchReport& report);

}  // namespace zoo
