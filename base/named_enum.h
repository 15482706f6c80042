#pragma once
// Enumerations whose values have names. Configurations, reports and printed modules show the names.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <type_traits>

namespace zoo {

/// An enumeration whose values have names: `config_names(E)` is found by argument-dependent look-up and
/// returns an array with the name of enumerator i at index i.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) { config_names(e).size(); };

/// The name of an enumerator, as the configuration writes it.
template <NamedEnum E>
std::string_view name_of(E value) {
  return config_names(value)[static_cast<size_t>(value)];
}

/// The enumerator that has this name.
template <NamedEnum E>
std::optional<E> enumerator_named(std::string_view name) {
  const auto names = config_names(E{});
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<E>(found - names.begin()));
}

}  // namespace zoo
