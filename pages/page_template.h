#pragma once
// Escapes text for its place in a page, and fills pages.

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

/// A page of cmake/ZooEmbed.cmake with its title and its data, which is JSON. Both are escaped here.
std::string filled_page(std::string_view page, std::string_view title, std::string_view data);

}  // namespace zoo
