#pragma once
// Filters and tests by their names, as jinja2 has them.

#include <optional>
#include <string>

#include "templates/values/value.h"

namespace zoo::templates {

/// value|name(arguments). Throws Problem for a filter that does not exist or is not supported.
Value apply_filter(Budget& budget, const std::string& name, const Value& value, const Arguments& arguments);
/// value is name(arguments). Throws as apply_filter().
bool apply_test(Budget& budget, const std::string& name, const Value& value, const Arguments& arguments);

/// The filters of filters.cpp that work on items; nullopt for another name.
std::optional<Value> apply_sequence_filter(Budget& budget, const std::string& name, const Value& value,
                                           const Arguments& arguments);

}  // namespace zoo::templates
