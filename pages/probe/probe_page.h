#pragma once
// The card of a part of a model as a page.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// One HTML file that needs neither a network nor a library. `card`: as to_json(PartCard) gives it
/// (costs/part_card.h); the element with id "data" holds it for other programs.
std::string probe_page(const nlohmann::ordered_json& card);

}  // namespace zoo
