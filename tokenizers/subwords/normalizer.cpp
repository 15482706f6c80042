#include "tokenizers/subwords/normalizer.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/subwords/byte_level.h"
#include "tokenizers/subwords/precompiled.h"
#include "tokenizers/subwords/replacement.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

bool is_ascii_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// The code point that comes next in the old text.
char32_t next_of(const AlignedText& text, const TextRewriter& to) {
  size_t at = to.position();
  return next_code_point(text.text(), at);
}

/// Each character becomes change(c).
template <class Change>
void map_characters(AlignedText& text, const Change& change) {
  TextRewriter to(text);
  while (to.position() < text.size()) to.replace(change(next_of(text, to)));
  to.finish();
}

template <class IsRemoved>
void remove_characters(AlignedText& text, const IsRemoved& is_removed) {
  TextRewriter to(text);
  bool changed = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (is_removed(next_code_point(text.text(), at))) {
      to.drop(at - begin);
      changed = true;
    } else {
      to.keep(at - begin);
    }
  }
  if (changed) to.finish();
}

void to_normal_form(AlignedText& text, NormalForm form) {
  if (is_ascii_text(text.text())) return;
  std::vector<NormalCharacter> characters;
  append_normal_form(text.text(), form, characters);
  rewrite(text, characters);
}

void to_lower_case(AlignedText& text) {
  std::u32string lower;
  TextRewriter to(text);
  while (to.position() < text.size()) {
    lower.clear();
    append_lower(next_of(text, to), lower);
    to.replace(lower.front());
    for (size_t i = 1; i < lower.size(); ++i) to.insert(lower[i]);
  }
  to.finish();
}

void strip_accents(AlignedText& text) { remove_characters(text, is_combining_mark); }

Normalizer strip_blanks(const SpecJson& part) {
  const bool left = part.at("strip_left").get<bool>(), right = part.at("strip_right").get<bool>();
  return {[=](AlignedText& text) {
    size_t begin = 0, end = text.size();
    for (size_t next = begin; left && begin < end; begin = next) {
      if (!is_white_space(next_code_point(text.text(), next))) break;
    }
    for (size_t before = end; right && begin < end; end = before) {
      if (!is_white_space(previous_code_point(text.text(), before))) break;
    }
    TextRewriter to(text);
    to.drop(begin);
    to.keep(end - begin);
    to.finish();
  }};
}

/// What Google's translation systems do to control characters and blanks.
void clean_like_nmt(AlignedText& text) {
  remove_characters(text, [](char32_t c) {
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  });
  map_characters(text, [](char32_t c) {
    const bool is_blank = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                          (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                          c == 0xFEFF || c == 0xFFFD;
    return is_blank ? U' ' : c;
  });
}

void to_characters_of_bytes(AlignedText& text) {
  AlignedText result({}, text.alignment());
  for (size_t i = 0; i < text.size(); ++i)
    result.append(as_characters(std::string_view(text.text()).substr(i, 1)), text, {i, i + 1});
  text = std::move(result);
}

Normalizer prepend_text(const SpecJson& part) {
  return {[prefix = short_option(part, "prepend", "")](AlignedText& text) {
    if (text.size() == 0 || prefix.empty()) return;
    size_t end = 0;
    next_code_point(text.text(), end);
    AlignedText result = text.part({0, 0});
    result.append(prefix, text, {0, end});
    result.append(text, {0, text.size()});
    text = std::move(result);
  }};
}

Normalizer replace_pattern(const SpecJson& part) {
  return {[pattern = std::make_shared<const TextPattern>(part.at("pattern")),
           content = short_option(part, "content", "")](AlignedText& text) {
    TextRewriter to(text);
    pattern->for_each_match(text.text(), [&](size_t begin, size_t end) {
      to.keep(begin - to.position());
      to.drop(end - begin);
      to.insert(content);
    });
    to.keep_rest();
    to.finish();
  }};
}

bool is_chinese_character(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/// The rules of BERT (https://github.com/google-research/bert).
class BertRules {
 public:
  explicit BertRules(const SpecJson& part)
      : cleans_(option(part, "clean_text", true)),
        parts_chinese_(option(part, "handle_chinese_chars", true)),
        lowercases_(option(part, "lowercase", true)),
        strips_accents_(option(part, "strip_accents", lowercases_)) {}

  void operator()(AlignedText& text) const {
    if (text.alignment() == Alignment::dropped && is_ascii_text(text.text())) return apply_to_ascii(text);
    if (cleans_) {
      remove_characters(text, [](char32_t c) { return c == 0 || c == 0xFFFD || is_bert_removed(c); });
      map_characters(text, [](char32_t c) { return is_white_space(c) ? U' ' : c; });
    }
    if (parts_chinese_) part_chinese(text);
    if (strips_accents_) {
      to_normal_form(text, NormalForm::nfd);
      remove_characters(text, is_bert_nonspacing);
    }
    if (lowercases_) to_lower_case(text);
  }

 private:
  /// The same for most texts, at once.
  void apply_to_ascii(AlignedText& text) const {
    std::string result;
    result.reserve(text.size());
    for (const char c : text.text()) {
      const bool is_blank = c == ' ' || (c >= '\t' && c <= '\r');
      if (cleans_ && ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7F)) continue;
      result += cleans_ && is_blank                   ? ' '
                : lowercases_ && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32)
                                                      : c;
    }
    text = AlignedText(std::move(result), Alignment::dropped);
  }

  static void part_chinese(AlignedText& text) {
    TextRewriter to(text);
    while (to.position() < text.size()) {
      const char32_t c = next_of(text, to);
      if (is_chinese_character(c)) {
        to.replace(U' ');
        to.insert(c);
        to.insert(U' ');
      } else {
        to.replace(c);
      }
    }
    to.finish();
  }

  bool cleans_, parts_chinese_, lowercases_, strips_accents_;
};

Normalizer normalizer_sequence(const SpecJson& part) {
  std::vector<Normalizer> parts;
  for (const auto& each : part.at("normalizers")) {
    if (auto made = make_normalizer(each)) parts.push_back(std::move(*made));
  }
  const bool keep_to_words = std::ranges::all_of(parts, &Normalizer::keeps_to_words);
  return {[parts = std::move(parts)](AlignedText& text) {
            const size_t before = text.size();
            for (const auto& each : parts) {
              each.apply(text);
              check_growth(before, text.size());
            }
          },
          keep_to_words};
}

Normalizer normal_form(NormalForm form) {
  return {[form](AlignedText& text) { to_normal_form(text, form); }, true};
}

}  // namespace

std::optional<Normalizer> make_normalizer(const SpecJson& part) {
  if (part.is_null()) return std::nullopt;
  const std::string type = type_of(part);
  if (type == "NFC") return normal_form(NormalForm::nfc);
  if (type == "NFD") return normal_form(NormalForm::nfd);
  if (type == "NFKC") return normal_form(NormalForm::nfkc);
  if (type == "NFKD") return normal_form(NormalForm::nfkd);
  if (type == "Lowercase") return Normalizer{to_lower_case, true};
  if (type == "StripAccents") return Normalizer{strip_accents, true};
  if (type == "Strip") return strip_blanks(part);
  if (type == "Prepend") return prepend_text(part);
  if (type == "Replace") return replace_pattern(part);
  if (type == "Precompiled") return make_precompiled(part);
  if (type == "Nmt") return Normalizer{clean_like_nmt, true};
  if (type == "ByteLevel") return Normalizer{to_characters_of_bytes};
  if (type == "BertNormalizer") return Normalizer{BertRules(part), true};
  if (type == "Sequence") return normalizer_sequence(part);
  refuse_part("the normalizer", type);
}

}  // namespace zoo
