#pragma once
// Reading the parts of a tokenizer.json.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace zoo {

/// The value of a member, or `otherwise` if it is missing or null. Throws nlohmann's exceptions for a value
/// of another type.
template <class T>
T option(const nlohmann::json& part, const char* name, T otherwise) {
  const auto found = part.find(name);
  return found == part.end() || found->is_null() ? otherwise : found->get<T>();
}
inline std::string option(const nlohmann::json& part, const char* name, const char* otherwise) {
  return option<std::string>(part, name, otherwise);
}

/// Throws DataError "tokenizer.json: KIND 'NAME' is not supported".
[[noreturn]] void refuse_part(std::string_view kind, std::string_view name);
/// The member "type" of a part.
std::string type_of(const nlohmann::json& part);

}  // namespace zoo
