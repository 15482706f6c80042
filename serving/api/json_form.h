#pragma once

#include <string>

namespace zoo {

/// A regular expression of JSON objects with up to two levels of objects and lists within them, written as
/// generation/constraints/json_schema.h writes JSON.
std::string any_json_object();

}  // namespace zoo
