#include "tokenizers/subwords/byte_level.h"

#include <algorithm>
#include <array>

#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

struct ByteCharacters {
  std::array<char, 512> utf8{};        // two bytes for each byte; the second is 0 if there is one only
  std::array<int16_t, 512> byte_of{};  // by code point; -1: none
};

constexpr ByteCharacters make_byte_characters() {
  ByteCharacters result;
  for (auto& byte : result.byte_of) byte = -1;
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const uint32_t c = printable ? byte : next++;
    result.byte_of[c] = static_cast<int16_t>(byte);
    result.utf8[2 * byte] = static_cast<char>(c < 0x80 ? c : 0xC0 | c >> 6);
    result.utf8[2 * byte + 1] = static_cast<char>(c < 0x80 ? 0 : 0x80 | (c & 0x3F));
  }
  return result;
}

constexpr ByteCharacters byte_characters = make_byte_characters();

/// Length of the longest start of `bytes` that begins a character, at least 1; sets `complete` if it is one.
size_t character_length(std::string_view bytes, bool& complete) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char first = byte(0);
  complete = first < 0x80;
  if (first < 0xC2 || first > 0xF4) return 1;
  const size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  size_t length = 1;
  for (; length < wanted && length < bytes.size(); ++length) {
    unsigned char least = 0x80, most = 0xBF;
    if (length == 1 && first == 0xE0) least = 0xA0;
    if (length == 1 && first == 0xED) most = 0x9F;
    if (length == 1 && first == 0xF0) least = 0x90;
    if (length == 1 && first == 0xF4) most = 0x8F;
    if (byte(length) < least || byte(length) > most) break;
  }
  complete = length == wanted;
  return length;
}

}  // namespace

void append_as_characters(std::string_view bytes, std::string& to) {
  for (const char byte : bytes) {
    const size_t at = size_t{2} * static_cast<unsigned char>(byte);
    to += byte_characters.utf8[at];
    if (byte_characters.utf8[at + 1] != 0) to += byte_characters.utf8[at + 1];
  }
}

std::string as_characters(std::string_view bytes) {
  std::string text;
  append_as_characters(bytes, text);
  return text;
}

void append_as_bytes(std::string_view token, std::string& to) {
  const size_t before = to.size();
  for (size_t at = 0; at < token.size();) {
    const char32_t c = next_code_point(token, at);
    if (c >= byte_characters.byte_of.size() || byte_characters.byte_of[c] < 0) {
      to.resize(before);
      to += token;
      return;
    }
    to += static_cast<char>(byte_characters.byte_of[c]);
  }
}

std::string with_replacement_characters(std::string_view bytes) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string result;
  result.reserve(bytes.size());
  for (size_t at = 0; at < bytes.size();) {
    bool complete = false;
    size_t length = character_length(bytes.substr(at), complete);
    if (complete && length == 1) {
      while (at + length < bytes.size() && static_cast<unsigned char>(bytes[at + length]) < 0x80) ++length;
    }
    result += complete ? bytes.substr(at, length) : replacement;
    at += length;
  }
  return result;
}

}  // namespace zoo
