#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace zoo {

/// The place in `root` to which a reference such as #/$defs/NAME leads: a JSON pointer (RFC 6901) as the
/// fragment of a URI. Null if it leads nowhere.
const nlohmann::ordered_json* at_json_reference(const nlohmann::ordered_json& root,
                                                std::string_view reference);

}  // namespace zoo
