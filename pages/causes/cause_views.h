#pragma once
// The reports of causes as tables, bars, coloured texts and pictures, which cause_cards.js draws in a page of
// its own and in the page of zoo serve.
//
// {"kind": such as "Lens", "name": of the run, "title", "summary",
//  "grids": [{"title", "note", "corner", "rows": names, "columns": names, "values": rows of numbers or null,
//             "texts", "hints": rows of strings, or []}, …],
//  "bars": [{"title", "note", "items": [{"name", "value"}, …]}, …],
//  "texts": [{"title", "note", "tokens": names, "values", "most": the value of the strongest colour}, …],
//  "pictures": [{"title", "note", "rows", "columns", "values": rows of numbers, "part": [x, y, width, height]
//               in pixels of the picture, or null: all of it}, …]}; the last two may be absent.

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "analysis/causes/reports_json.h"

namespace zoo {

/// What the model would say after each layer at each place, and the parts of a logit.
nlohmann::ordered_json lens_view(const LensReport& report,
                                 const std::optional<LensContributions>& contributions);

/// The change of the loss without each head and each sub-layer.
nlohmann::ordered_json ablation_view(const AblationReport& report);

/// What each patch recovers: by head, and by layer and position.
nlohmann::ordered_json patch_view(const PatchReport& report);

/// What each token, or each part of the picture, adds to an answer.
nlohmann::ordered_json attribution_view(const AttributionReport& report);

}  // namespace zoo
