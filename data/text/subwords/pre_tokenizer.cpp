#include "data/text/subwords/pre_tokenizer.h"

#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text/subwords/byte_level.h"
#include "data/text/subwords/replacement.h"
#include "data/text/subwords/specification.h"
#include "data/text/unicode/characters.h"
#include "data/text/unicode/pattern.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

/// What becomes of the text that a pattern matches.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

SplitBehavior split_behavior(const std::string& name) {
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  refuse_part("the behavior", name);
}

/// A part of a text that is a match, or what stands between matches.
struct TextPart {
  size_t begin = 0, end = 0;
  bool is_match = false;
};

/// Receives the parts of one piece in their order, and appends the new pieces.
class PieceSplitter {
 public:
  PieceSplitter(std::string_view piece, SplitBehavior behavior, CutText& to)
      : piece_(piece), behavior_(behavior), to_(to) {}

  void add(const TextPart& part) {
    const auto text = piece_.substr(part.begin, part.end - part.begin);
    switch (behavior_) {
      case SplitBehavior::removed:
        if (!part.is_match) to_.append(text);
        return;
      case SplitBehavior::isolated:
        to_.append(text);
        return;
      case SplitBehavior::contiguous:
        if (part.is_match != last_is_match_) flush();
        break;
      case SplitBehavior::merged_with_previous:
        if (!part.is_match || last_is_match_) flush();
        break;
      case SplitBehavior::merged_with_next:
        if (part.is_match || !last_is_match_) flush();
        break;
    }
    end_ = part.end;
    last_is_match_ = part.is_match;
  }

  void finish() { flush(); }

 private:
  void flush() {
    to_.append(piece_.substr(begin_, end_ - begin_));
    begin_ = end_;
  }

  std::string_view piece_;
  SplitBehavior behavior_;
  CutText& to_;
  size_t begin_ = 0, end_ = 0;
  bool last_is_match_ = false;
};

/// Splits every piece. `matches(piece, use)` calls use(begin, end) for each match.
template <class Matches>
CutText split_pieces(const CutText& text, SplitBehavior behavior, bool invert, const Matches& matches) {
  CutText result({});
  for (size_t i = 0; i < text.size(); ++i) {
    const auto piece = text.piece(i);
    PieceSplitter splitter(piece, behavior, result);
    size_t done = 0;
    matches(piece, [&](size_t begin, size_t end) {
      if (begin > done) splitter.add({done, begin, invert});
      splitter.add({begin, end, !invert});
      done = end;
    });
    if (done < piece.size()) splitter.add({done, piece.size(), invert});
    splitter.finish();
  }
  return result;
}

/// The same for single code points.
template <class IsMatch>
CutText split_at(const CutText& text, SplitBehavior behavior, const IsMatch& is_match) {
  return split_pieces(text, behavior, false, [&](std::string_view piece, const auto& use) {
    for (size_t at = 0; at < piece.size();) {
      const size_t begin = at;
      if (is_match(next_code_point(piece, at))) use(begin, at);
    }
  });
}

bool is_bert_punctuation(char32_t c) {
  const bool is_ascii =
      (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return is_ascii || is_punctuation(c);
}

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const SpecJson& part) : adds_blank_(option(part, "add_prefix_space", true)) {
    if (option(part, "use_regex", true))
      words_.emplace(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  }

  CutText cut(const CutText& text, PieceContext context) const override {
    CutText result({});
    std::string marked, characters;
    for (size_t i = 0; i < text.size(); ++i) {
      auto piece = text.piece(i);
      const bool is_continuation = i == 0 && context == PieceContext::continuation;
      if (adds_blank_ && !is_continuation && !piece.starts_with(' '))
        piece = marked.assign(" ").append(piece);
      const auto add = [&](size_t begin, size_t end) {
        characters.clear();
        append_as_characters(piece.substr(begin, end - begin), characters);
        result.append(characters);
      };
      if (words_) {
        words_->for_each_match(piece, add);  // every character is in a match
      } else {
        add(0, piece.size());
      }
    }
    return result;
  }

  bool keeps_text() const override { return !adds_blank_; }

 private:
  bool adds_blank_;
  std::optional<Pattern> words_;
};

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(const SpecJson& part)
      : mark_(option(part, "replacement", "▁")), splits_(option(part, "split", true)) {
    size_t end = 0;
    if (!mark_.empty()) next_code_point(mark_, end);
    if (mark_.empty() || end != mark_.size())
      throw DataError("tokenizer.json: Metaspace's replacement is not one character");
    const auto scheme =
        option(part, "prepend_scheme", option(part, "add_prefix_space", true) ? "always" : "never");
    if (scheme != "always" && scheme != "first" && scheme != "never")
      refuse_part("the prepend_scheme", scheme);
    always_ = scheme == "always";
    first_ = scheme == "first";
  }

  CutText cut(const CutText& text, PieceContext context) const override {
    CutText marked({});
    std::string changed;
    for (size_t i = 0; i < text.size(); ++i) {
      changed.clear();
      for (const char c : text.piece(i)) c == ' ' ? changed.append(mark_) : changed.append(1, c);
      const auto here = i == 0 ? context : PieceContext::later;
      const bool wants_mark =
          here != PieceContext::continuation && (always_ || (first_ && here == PieceContext::first));
      if (wants_mark && !changed.starts_with(mark_)) changed.insert(0, mark_);
      marked.append(changed);
    }
    if (!splits_) return marked;
    return split_pieces(
        marked, SplitBehavior::merged_with_next, false, [&](std::string_view piece, const auto& use) {
          for (size_t at = piece.find(mark_); at != piece.npos; at = piece.find(mark_, at + mark_.size()))
            use(at, at + mark_.size());
        });
  }

  bool keeps_text() const override { return false; }

 private:
  std::string mark_;
  bool splits_, always_ = false, first_ = false;
};

class BertWords final : public PreTokenizer {
 public:
  CutText cut(const CutText& text, PieceContext) const override {
    const auto words = split_at(text, SplitBehavior::removed, is_white_space);
    return split_at(words, SplitBehavior::isolated, is_bert_punctuation);
  }
  bool keeps_text() const override { return false; }
};

/// Runs of word characters, and runs of others, without blanks.
class WordsAndSymbols final : public PreTokenizer {
 public:
  CutText cut(const CutText& text, PieceContext) const override {
    CutText result({});
    for (size_t i = 0; i < text.size(); ++i) {
      const auto piece = text.piece(i);
      Kind kind = Kind::blank;
      size_t begin = 0;
      for (size_t at = 0; at < piece.size();) {
        const size_t here = at;
        const Kind next = kind_of(next_code_point(piece, at));
        if (next == kind) continue;
        if (kind != Kind::blank) result.append(piece.substr(begin, here - begin));
        begin = here;
        kind = next;
      }
      if (kind != Kind::blank) result.append(piece.substr(begin));
    }
    return result;
  }
  bool keeps_text() const override { return false; }

 private:
  enum class Kind { blank, word, symbol };
  static Kind kind_of(char32_t c) {
    return is_word_character(c) ? Kind::word : is_white_space(c) ? Kind::blank : Kind::symbol;
  }
};

class WhitespaceSplit final : public PreTokenizer {
 public:
  CutText cut(const CutText& text, PieceContext) const override {
    return split_at(text, SplitBehavior::removed, is_white_space);
  }
  bool keeps_text() const override { return false; }
};

class PatternSplit final : public PreTokenizer {
 public:
  explicit PatternSplit(const SpecJson& part)
      : pattern_(part.at("pattern")),
        behavior_(split_behavior(part.at("behavior").get<std::string>())),
        invert_(option(part, "invert", false)) {}

  CutText cut(const CutText& text, PieceContext) const override {
    return split_pieces(text, behavior_, invert_, [&](std::string_view piece, const auto& use) {
      pattern_.for_each_match(piece, use);
    });
  }
  bool keeps_text() const override { return behavior_ != SplitBehavior::removed; }

 private:
  TextPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class CharDelimiterSplit final : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(const SpecJson& part) {
    const auto text = part.at("delimiter").get<std::string>();
    size_t end = 0;
    if (!text.empty()) delimiter_ = next_code_point(text, end);
    if (text.empty() || end != text.size())
      throw DataError("tokenizer.json: CharDelimiterSplit's delimiter is not one character");
  }
  CutText cut(const CutText& text, PieceContext) const override {
    return split_at(text, SplitBehavior::removed, [&](char32_t c) { return c == delimiter_; });
  }
  bool keeps_text() const override { return false; }

 private:
  char32_t delimiter_ = 0;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(const SpecJson& part)
      : behavior_(option(part, "individual_digits", false) ? SplitBehavior::isolated
                                                           : SplitBehavior::contiguous) {}
  CutText cut(const CutText& text, PieceContext) const override {
    return split_at(text, behavior_, is_number);
  }
  bool keeps_text() const override { return true; }

 private:
  SplitBehavior behavior_;
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(const SpecJson& part)
      : behavior_(split_behavior(option(part, "behavior", "Isolated"))) {}
  CutText cut(const CutText& text, PieceContext) const override {
    return split_at(text, behavior_, is_bert_punctuation);
  }
  bool keeps_text() const override { return behavior_ != SplitBehavior::removed; }

 private:
  SplitBehavior behavior_;
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(const SpecJson& part) {
    for (const auto& each : part.at("pretokenizers")) {
      if (auto made = make_pre_tokenizer(each)) parts_.push_back(std::move(made));
    }
  }
  CutText cut(const CutText& text, PieceContext context) const override {
    CutText result = text;
    for (const auto& part : parts_) result = part->cut(result, context);
    return result;
  }
  bool keeps_text() const override {
    bool keeps = true;
    for (const auto& part : parts_) keeps = keeps && part->keeps_text();
    return keeps;
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

}  // namespace

CutText::CutText(std::string text) : text_(std::move(text)) {
  if (!text_.empty()) ends_.push_back(text_.size());
}

void CutText::append(std::string_view piece) {
  if (piece.empty()) return;
  text_ += piece;
  ends_.push_back(text_.size());
}

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const SpecJson& part) {
  if (part.is_null()) return nullptr;
  const std::string type = type_of(part);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(part);
  if (type == "BertPreTokenizer") return std::make_unique<BertWords>();
  if (type == "Whitespace") return std::make_unique<WordsAndSymbols>();
  if (type == "WhitespaceSplit") return std::make_unique<WhitespaceSplit>();
  if (type == "Split") return std::make_unique<PatternSplit>(part);
  if (type == "Metaspace") return std::make_unique<Metaspace>(part);
  if (type == "Digits") return std::make_unique<Digits>(part);
  if (type == "Punctuation") return std::make_unique<Punctuation>(part);
  if (type == "CharDelimiterSplit") return std::make_unique<CharDelimiterSplit>(part);
  if (type == "Sequence") return std::make_unique<PreTokenizerSequence>(part);
  refuse_part("the pre-tokenizer", type);
}

}  // namespace zoo
