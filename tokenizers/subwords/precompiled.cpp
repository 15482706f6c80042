#include "tokenizers/subwords/precompiled.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tokenizers/sentencepiece/charsmap.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

class Precompiled {
 public:
  explicit Precompiled(std::string charsmap) : charsmap_(std::move(charsmap)) {
    check_charsmap(charsmap_);
    uint32_t size = 0;
    std::memcpy(&size, charsmap_.data(), sizeof size);
    units_.resize(size / sizeof(uint32_t));
    std::memcpy(units_.data(), charsmap_.data() + sizeof size, size);
    replacements_begin_ = sizeof size + size;
  }

  void operator()(AlignedText& text) const {
    constexpr size_t longest_whole = 5;  // bytes
    const std::string_view old = text.text();
    std::vector<NormalCharacter> characters;
    characters.reserve(old.size());
    bool changed = false;
    const auto change = [&](std::string_view part) {
      const auto rule = replacement(part);
      if (!rule) return false;
      append_replacement(part, *rule, characters);
      changed = true;
      return true;
    };
    for (size_t at = 0; at < old.size();) {
      const size_t end = grapheme_end(old, at, longest_whole);
      if (end - at <= longest_whole && change(old.substr(at, end - at))) {
        at = end;
        continue;
      }
      while (at < end) {
        const size_t begin = at;
        const char32_t c = next_code_point(old, at);
        if (!change(old.substr(begin, at - begin))) characters.push_back({c, 0});
      }
    }
    if (changed) rewrite(text, characters);
  }

 private:
  /// What the shortest rule that `text` begins with puts in the place of all of it.
  std::optional<std::string_view> replacement(std::string_view text) const {
    const auto offset = [](uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); };
    uint32_t at = offset(units_[0]);
    for (const char byte : text) {
      if (byte == 0) break;
      at ^= static_cast<unsigned char>(byte);
      const uint32_t unit = units_[at];
      if ((unit & 0x800000FF) != static_cast<unsigned char>(byte)) break;
      at ^= offset(unit);
      if ((unit >> 8 & 1) == 0) continue;
      const auto replacements = std::string_view(charsmap_).substr(replacements_begin_);
      const size_t begin = units_[at] & 0x7FFFFFFF;
      return replacements.substr(begin, replacements.find('\0', begin) - begin);
    }
    return std::nullopt;
  }

  static int32_t count_characters(std::string_view text) {
    int32_t n = 0;
    for (size_t at = 0; at < text.size(); ++n) next_code_point(text, at);
    return n;
  }

  /// Which characters count as new, and which one takes the place of several, is as in tokenizers: where
  /// nothing replaces the first characters of a text, the origins of the others are wrong there, too.
  static void append_replacement(std::string_view part, std::string_view rule,
                                 std::vector<NormalCharacter>& to) {
    const int32_t more = count_characters(rule) - count_characters(part);
    for (size_t at = 0; at < rule.size();) to.push_back({next_code_point(rule, at), 0});
    for (int32_t i = 0; i < more; ++i) to[to.size() - 1 - static_cast<size_t>(i)].change = 1;
    if (more < 0 && !to.empty()) to.back().change += more;
  }

  std::string charsmap_;
  std::vector<uint32_t> units_;
  size_t replacements_begin_ = 0;
};

}  // namespace

std::optional<Normalizer> make_precompiled(const nlohmann::json& part) {
  const auto text = option(part, "precompiled_charsmap", "");
  if (text.empty()) return std::nullopt;
  auto charsmap = from_base64(text);
  if (!charsmap) throw DataError("tokenizer.json: precompiled_charsmap is not Base64");
  try {
    return Normalizer{Precompiled(std::move(*charsmap)), true};
  } catch (const DataError& e) {
    throw DataError(std::string("tokenizer.json: ") + e.what());
  }
}

}  // namespace zoo
