#pragma once
// What goes into a page: text made safe for where it stands, and the template it is filled into.

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// `json` on one line; what is no UTF-8 in its strings is replaced.
std::string as_json_text(const nlohmann::ordered_json& json);

/// JSON that cannot end the <script> element around it, whatever the strings in it say.
std::string escaped_for_script(std::string_view json);

/// Text, or the value of an attribute; what is no UTF-8 is replaced.
std::string escaped_for_html(std::string_view text);

/// Replaces each {{name}} in `source` by its part. What is filled in is not looked at again, so a part may
/// itself contain "{{name}}". A part that is not there is a mistake of ours: throws std::out_of_range.
std::string fill_template(std::string_view source, const std::map<std::string_view, std::string>& parts);

}  // namespace zoo
