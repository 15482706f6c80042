#pragma once
// Attributes, items, slices and methods of values, as jinja2's ImmutableSandboxedEnvironment has them.

#include <string>
#include <string_view>

#include "templates/values/value.h"

namespace zoo::templates {

/// value.name: an attribute, or else the item with this key. Undefined if there is neither; forbidden if it
/// would change the value.
Value attribute(Budget& budget, const Value& value, const std::string& name);
/// value[key]: the item, or else the attribute of this name.
Value item(Budget& budget, const Value& value, const Value& key);
/// value[begin:end:step]; none stands for what is not given.
Value slice(Budget& budget, const Value& value, const Value& begin, const Value& end, const Value& step);
/// The attribute of a filter: "function.name", "0.role".
Value attribute_path(Budget& budget, const Value& value, const Value& path);

/// Calls a method of a text, a list or a dictionary. Throws Problem for one that is not supported.
Value call_method(Budget& budget, const Method& method, const Arguments& arguments);
/// Calls a method of a text.
Value call_text_method(Budget& budget, const std::string& text, const std::string& name,
                       const Arguments& arguments);
/// ", ".join(items). Throws Problem for an item that is no text.
Value join_texts(Budget& budget, const std::string& separator, const Value& items);
/// text.replace(from, to, count); a negative count replaces all.
Value replace_text(Budget& budget, const std::string& text, const std::string& from, const std::string& to,
                   int64_t count);

}  // namespace zoo::templates
