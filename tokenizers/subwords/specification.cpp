#include "tokenizers/subwords/specification.h"

#include <cstdint>

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

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const auto digit = [](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  size_t n_digits = text.size();
  while (n_digits > 0 && text.size() - n_digits < 2 && text[n_digits - 1] == '=') --n_digits;
  std::string bytes;
  bytes.reserve(3 * text.size() / 4);
  uint32_t bits = 0;
  for (size_t i = 0; i < n_digits; ++i) {
    const int value = digit(text[i]);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 0) bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)));
  }
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const auto group = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    for (size_t i = 0; i < 4; ++i) text += i <= group.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string type_of(const nlohmann::json& part) { return part.at("type").get<std::string>(); }

}  // namespace zoo
