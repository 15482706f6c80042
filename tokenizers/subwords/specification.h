#pragma once
// Reading the parts of a tokenizer.json.

#include <optional>
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

/// A text that parts put into other texts, at most this long: a file cannot ask for any amount of memory.
constexpr size_t kLongestInsert = 256;  // bytes
std::string short_option(const nlohmann::json& part, const char* name, const char* otherwise);
/// Throws DataError if a text became much longer through the parts of a tokenizer: a file can double it many
/// times.
void check_growth(size_t bytes_before, size_t bytes);
/// Throws DataError if a part has too many parts in it.
void check_part_count(const nlohmann::json& part);

/// Throws DataError "tokenizer.json: KIND 'NAME' is not supported".
[[noreturn]] void refuse_part(std::string_view kind, std::string_view name);
/// The bytes of a text in Base64; nullopt if it is none.
std::optional<std::string> from_base64(std::string_view text);
/// The reverse.
std::string to_base64(std::string_view bytes);
/// The member "type" of a part.
std::string type_of(const nlohmann::json& part);

}  // namespace zoo
