#include "data/text/subwords/specification.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

void refuse_part(std::string_view kind, std::string_view name) {
  throw DataError(fmt::format("tokenizer.json: {} '{}' is not supported", kind, excerpt(name)));
}

std::string short_option(const nlohmann::json& part, const char* name, const char* otherwise) {
  auto text = option(part, name, otherwise);
  if (text.size() > kLongestInsert)
    throw DataError(fmt::format("tokenizer.json: '{}' is longer than {} bytes", name, kLongestInsert));
  return text;
}

void check_growth(size_t bytes_before, size_t bytes) {
  constexpr size_t most_times = 64, always_allowed = 4096;
  if (bytes > most_times * bytes_before + always_allowed)
    throw DataError(
        fmt::format("tokenizer.json: its parts make a text more than {} times longer", most_times));
}

void check_part_count(const nlohmann::json& part) {
  constexpr size_t most_parts = 256;
  size_t n = 0;
  const auto count = [&](const nlohmann::json& value, const auto& again) -> void {
    if (!value.is_structured()) return;
    if (value.is_object() && value.contains("type") && ++n > most_parts)
      throw DataError(fmt::format("tokenizer.json: more than {} parts", most_parts));
    for (const auto& inner : value) again(inner, again);
  };
  count(part, count);
}

std::string type_of(const nlohmann::json& part) { return part.at("type").get<std::string>(); }

}  // namespace zoo
