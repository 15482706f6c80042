#pragma once
// The JSON of results: its keys keep their order.

#include <optional>

#include <nlohmann/json.hpp>

namespace zoo {

using Json = nlohmann::ordered_json;

/// The value, or null.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace zoo
