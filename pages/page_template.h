#pragma once
// Escapes text for its place in a page, and fills templates.

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// `json` on one line; invalid UTF-8 in its strings is replaced.
std::string as_json_text(const nlohmann::ordered_json& json);

/// Escapes JSON so that no string in it can end the <script> element around it.
std::string escaped_for_script(std::string_view json);

/// Escapes text for an element or for the value of an attribute; invalid UTF-8 is replaced.
std::string escaped_for_html(std::string_view text);

/// Replaces each {{name}} in `source` by its part. Inserted text is not searched again, so a part may itself
/// contain "{{name}}". Throws std::out_of_range for a missing part, which is a mistake in the program.
std::string fill_template(std::string_view source, const std::map<std::string_view, std::string>& parts);

}  // namespace zoo
