#include "generation/constraints/json_reference.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

namespace zoo {
namespace {

/// The member of an object or a list that a token of a JSON pointer names; null if there is none.
const nlohmann::ordered_json* at_token(const nlohmann::ordered_json& value, std::string_view token) {
  if (value.is_array()) {
    size_t index = value.size();
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
    const bool is_good = error == std::errc() && end == token.data() + token.size() && index < value.size();
    return is_good ? &value[index] : nullptr;
  }
  std::string name;
  for (size_t i = 0; i < token.size(); ++i) {
    const bool is_escape = token[i] == '~' && i + 1 < token.size();
    if (is_escape && token[i + 1] == '0') {
      name += '~', ++i;
    } else if (is_escape && token[i + 1] == '1') {
      name += '/', ++i;
    } else {
      name += token[i];
    }
  }
  const auto found = value.is_object() ? value.find(name) : value.end();
  return value.is_object() && found != value.end() ? &*found : nullptr;
}

/// A fragment without its %XX; nothing if one of them is no number.
std::optional<std::string> decoded_fragment(std::string_view fragment) {
  std::string text;
  for (size_t i = 0; i < fragment.size(); ++i) {
    if (fragment[i] != '%') {
      text += fragment[i];
      continue;
    }
    unsigned value = 0;
    const auto digits = fragment.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
    text += static_cast<char>(value);
    i += 2;
  }
  return text;
}

}  // namespace

const nlohmann::ordered_json* at_json_reference(const nlohmann::ordered_json& root,
                                                std::string_view reference) {
  const auto pointer = reference.starts_with('#') ? decoded_fragment(reference.substr(1)) : std::nullopt;
  const auto* found = pointer && (pointer->empty() || pointer->starts_with('/')) ? &root : nullptr;
  for (size_t begin = 1; found && begin <= pointer->size();) {
    const auto end = std::min(pointer->find('/', begin), pointer->size());
    found = at_token(*found, std::string_view(*pointer).substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

}  // namespace zoo
