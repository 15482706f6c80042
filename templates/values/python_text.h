#pragma once
// str() and repr() of values, and JSON as Python's json.dumps writes it.

#include <optional>
#include <string>
#include <string_view>

#include "templates/values/value.h"

namespace zoo::templates {

/// str(value): what {{ value }} writes.
std::string str(Budget& budget, const Value& value);
/// repr(value).
std::string repr(Budget& budget, const Value& value);
/// With &amp; &lt; &gt; &#39; &#34; for the signs of HTML.
std::string escaped(std::string_view text);
/// The shortest text that is this number: "1.0", "1e-07", "inf".
std::string real_text(double number);

struct JsonStyle {
  bool ascii = false, sorted = false;
  std::optional<std::string> indent;  // none: one line
  std::string between_items = ", ", after_key = ": ";
};
/// Throws Problem for a value that JSON does not have.
std::string json_text(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace zoo::templates
