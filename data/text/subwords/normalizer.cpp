#include "data/text/subwords/normalizer.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "data/text/subwords/replacement.h"
#include "data/text/subwords/specification.h"
#include "data/text/unicode/characters.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

/// `text` with each code point replaced by what `change(c, to)` appends to `to`.
template <class Change>
std::string changed_code_points(std::string_view text, const Change& change) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  for (size_t at = 0; at < text.size();) change(next_code_point(text, at), result);
  return result;
}

std::string in_lower_case(std::string_view text) {
  std::u32string lower;
  return changed_code_points(text, [&](char32_t c, std::string& to) {
    lower.clear();
    append_lower(c, lower);
    for (const char32_t part : lower) append_utf8(part, to);
  });
}

std::string without(bool (*is_removed)(char32_t), std::string_view text) {
  return changed_code_points(text, [&](char32_t c, std::string& to) {
    if (!is_removed(c)) append_utf8(c, to);
  });
}

class ToNormalForm final : public Normalizer {
 public:
  explicit ToNormalForm(NormalForm form) : form_(form) {}
  void apply(std::string& text) const override { text = in_normal_form(text, form_); }

 private:
  NormalForm form_;
};

class Lowercase final : public Normalizer {
 public:
  void apply(std::string& text) const override { text = in_lower_case(text); }
};

class StripAccents final : public Normalizer {
 public:
  void apply(std::string& text) const override { text = without(is_mark, text); }
};

class StripBlanks final : public Normalizer {
 public:
  explicit StripBlanks(const SpecJson& part)
      : left_(part.at("strip_left").get<bool>()), right_(part.at("strip_right").get<bool>()) {}

  void apply(std::string& text) const override {
    size_t begin = 0, end = text.size();
    for (size_t next = begin; left_ && begin < end; begin = next) {
      if (!is_white_space(next_code_point(text, next))) break;
    }
    for (size_t before = end; right_ && begin < end; end = before) {
      if (!is_white_space(previous_code_point(text, before))) break;
    }
    text = text.substr(begin, end - begin);
  }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(const SpecJson& part) : prefix_(short_option(part, "prepend", "")) {}
  void apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  explicit Replace(const SpecJson& part)
      : pattern_(part.at("pattern")), content_(short_option(part, "content", "")) {}
  void apply(std::string& text) const override { text = pattern_.replaced(text, content_); }

 private:
  TextPattern pattern_;
  std::string content_;
};

bool is_chinese_character(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/// The rules of BERT (https://github.com/google-research/bert).
class BertRules final : public Normalizer {
 public:
  explicit BertRules(const SpecJson& part)
      : cleans_(option(part, "clean_text", true)),
        parts_chinese_(option(part, "handle_chinese_chars", true)),
        lowercases_(option(part, "lowercase", true)),
        strips_accents_(option(part, "strip_accents", lowercases_)) {}

  void apply(std::string& text) const override {
    if (cleans_) text = changed_code_points(text, clean);
    if (parts_chinese_) text = changed_code_points(text, part_chinese);
    if (strips_accents_) text = without(is_nonspacing_mark, in_normal_form(text, NormalForm::nfd));
    if (lowercases_) text = in_lower_case(text);
  }

 private:
  static void clean(char32_t c, std::string& to) {
    const bool is_break = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (!is_break && is_other(c))) return;
    append_utf8(is_white_space(c) ? U' ' : c, to);
  }

  static void part_chinese(char32_t c, std::string& to) {
    const bool is_chinese = is_chinese_character(c);
    if (is_chinese) to += ' ';
    append_utf8(c, to);
    if (is_chinese) to += ' ';
  }

  bool cleans_, parts_chinese_, lowercases_, strips_accents_;
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(const SpecJson& part) {
    for (const auto& each : part.at("normalizers")) {
      if (auto made = make_normalizer(each)) parts_.push_back(std::move(made));
    }
  }
  void apply(std::string& text) const override {
    const size_t before = text.size();
    for (const auto& part : parts_) {
      part->apply(text);
      check_growth(before, text.size());
    }
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const SpecJson& part) {
  if (part.is_null()) return nullptr;
  const std::string type = type_of(part);
  if (type == "NFC") return std::make_unique<ToNormalForm>(NormalForm::nfc);
  if (type == "NFD") return std::make_unique<ToNormalForm>(NormalForm::nfd);
  if (type == "NFKC") return std::make_unique<ToNormalForm>(NormalForm::nfkc);
  if (type == "NFKD") return std::make_unique<ToNormalForm>(NormalForm::nfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Strip") return std::make_unique<StripBlanks>(part);
  if (type == "Prepend") return std::make_unique<Prepend>(part);
  if (type == "Replace") return std::make_unique<Replace>(part);
  if (type == "BertNormalizer") return std::make_unique<BertRules>(part);
  if (type == "Sequence") return std::make_unique<NormalizerSequence>(part);
  refuse_part("the normalizer", type);
}

}  // namespace zoo
