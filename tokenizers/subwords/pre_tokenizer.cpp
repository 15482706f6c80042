#include "tokenizers/subwords/pre_tokenizer.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "tokenizers/subwords/byte_level.h"
#include "tokenizers/subwords/known_patterns.h"
#include "tokenizers/subwords/replacement.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/pattern.h"

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
  PieceSplitter(size_t begin, SplitBehavior behavior, std::vector<TextRange>& to)
      : behavior_(behavior), to_(to), begin_(begin), end_(begin) {}

  void add(const TextPart& part) {
    switch (behavior_) {
      case SplitBehavior::removed:
        if (!part.is_match) append({part.begin, part.end});
        return;
      case SplitBehavior::isolated:
        append({part.begin, part.end});
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
  void append(TextRange piece) {
    if (piece.size() > 0) to_.push_back(piece);
  }
  void flush() {
    append({begin_, end_});
    begin_ = end_;
  }

  SplitBehavior behavior_;
  std::vector<TextRange>& to_;
  size_t begin_, end_;
  bool last_is_match_ = false;
};

/// Splits every piece. `matches(piece, use)` calls use(begin, end) for each match.
template <class Matches>
void split_pieces(CutText& text, SplitBehavior behavior, bool invert, const Matches& matches) {
  std::vector<TextRange> result;
  result.reserve(text.size() + text.whole().size() / 4);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto piece = text.piece(i);
    const size_t start = text.range(i).begin;
    PieceSplitter splitter(start, behavior, result);
    size_t done = 0;
    matches(piece, [&](size_t begin, size_t end) {
      if (begin > done) splitter.add({start + done, start + begin, invert});
      splitter.add({start + begin, start + end, !invert});
      done = end;
    });
    if (done < piece.size()) splitter.add({start + done, start + piece.size(), invert});
    splitter.finish();
  }
  text.set_pieces(std::move(result));
}

/// The same for single code points.
template <class IsMatch>
void split_at(CutText& text, SplitBehavior behavior, const IsMatch& is_match) {
  split_pieces(text, behavior, false, [&](std::string_view piece, const auto& use) {
    for (size_t at = 0; at < piece.size();) {
      const size_t begin = at;
      if (is_match(next_code_point(piece, at))) use(begin, at);
    }
  });
}

/// Writes a text with its pieces anew.
class PieceWriter {
 public:
  explicit PieceWriter(CutText& text) : from_(text), to_(text.whole().part({0, 0})) {}

  /// Begins a piece; it ends where the next one begins.
  void begin_piece() {
    if (to_.size() > begin_) pieces_.push_back({begin_, to_.size()});
    begin_ = to_.size();
  }
  /// `bytes` stand for the bytes `origin` of the old text.
  void append(std::string_view bytes, TextRange origin) { to_.append(bytes, from_.whole(), origin); }
  void keep(TextRange part) { to_.append(from_.whole(), part); }
  void finish() {
    begin_piece();
    from_.set(std::move(to_), std::move(pieces_));
  }

 private:
  CutText& from_;
  AlignedText to_;
  std::vector<TextRange> pieces_;
  size_t begin_ = 0;
};

/// Where the first character of a piece stands.
TextRange first_character(const CutText& text, size_t i) {
  const TextRange range = text.range(i);
  size_t end = range.begin;
  next_code_point(text.whole().text(), end);
  return {range.begin, end};
}

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const SpecJson& part) : adds_blank_(option(part, "add_prefix_space", true)) {
    if (option(part, "use_regex", true))
      words_.emplace(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  }

  void cut(CutText& text, PieceContext context) const override {
    if (adds_blank_) add_blanks(text, context);
    if (words_) {
      split_pieces(text, SplitBehavior::isolated, false,
                   [&](std::string_view piece, const auto& use) { words_->for_each_match(piece, use); });
    }
    PieceWriter to(text);
    std::string characters;
    for (size_t i = 0; i < text.size(); ++i) {
      to.begin_piece();
      const auto piece = text.piece(i);
      const TextRange range = text.range(i);
      if (text.whole().alignment() == Alignment::dropped) {
        characters.clear();
        append_as_characters(piece, characters);
        to.append(characters, range);
        continue;
      }
      for (size_t at = 0; at < piece.size(); ++at) {
        characters.clear();
        append_as_characters(piece.substr(at, 1), characters);
        to.append(characters, {range.begin + at, range.begin + at + 1});
      }
    }
    to.finish();
  }

  bool keeps_text() const override { return !adds_blank_; }
  /// Without the pattern, blanks are not seen any more.
  AtBlanks at_blanks() const override { return words_ ? AtBlanks::cuts : AtBlanks::unknown; }

 private:
  static void add_blanks(CutText& text, PieceContext context) {
    PieceWriter to(text);
    for (size_t i = 0; i < text.size(); ++i) {
      to.begin_piece();
      const bool is_continuation = i == 0 && context == PieceContext::continuation;
      if (!is_continuation && !text.piece(i).starts_with(' ')) to.append(" ", first_character(text, i));
      to.keep(text.range(i));
    }
    to.finish();
  }

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

  void cut(CutText& text, PieceContext context) const override {
    PieceWriter to(text);
    for (size_t i = 0; i < text.size(); ++i) {
      to.begin_piece();
      const auto piece = text.piece(i);
      const size_t start = text.range(i).begin;
      const auto here = i == 0 ? context : PieceContext::later;
      const bool wants_mark =
          here != PieceContext::continuation && (always_ || (first_ && here == PieceContext::first));
      if (wants_mark && !piece.starts_with(mark_) && !piece.starts_with(' '))
        to.append(mark_, first_character(text, i));
      for (size_t done = 0; done < piece.size();) {
        const size_t blank = std::min(piece.find(' ', done), piece.size());
        if (blank > done) to.keep({start + done, start + blank});
        if (blank < piece.size()) to.append(mark_, {start + blank, start + blank + 1});
        done = blank + 1;
      }
    }
    to.finish();
    if (!splits_) return;
    split_pieces(text, SplitBehavior::merged_with_next, false, [&](std::string_view piece, const auto& use) {
      for (size_t at = piece.find(mark_); at != piece.npos; at = piece.find(mark_, at + mark_.size()))
        use(at, at + mark_.size());
    });
  }

  bool keeps_text() const override { return false; }
  AtBlanks at_blanks() const override { return splits_ ? AtBlanks::cuts : AtBlanks::unknown; }

 private:
  std::string mark_;
  bool splits_, always_ = false, first_ = false;
};

class BertWords final : public PreTokenizer {
 public:
  AtBlanks at_blanks() const override { return AtBlanks::cuts; }
  void cut(CutText& text, PieceContext) const override {
    split_at(text, SplitBehavior::removed, is_white_space);
    split_at(text, SplitBehavior::isolated, is_bert_punctuation);
  }
  bool keeps_text() const override { return false; }
};

/// Runs of word characters, and runs of others, without blanks.
class WordsAndSymbols final : public PreTokenizer {
 public:
  AtBlanks at_blanks() const override { return AtBlanks::cuts; }
  void cut(CutText& text, PieceContext) const override {
    std::vector<TextRange> result;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto piece = text.piece(i);
      const size_t start = text.range(i).begin;
      Kind kind = Kind::blank;
      size_t begin = 0;
      for (size_t at = 0; at < piece.size();) {
        const size_t here = at;
        const Kind next = kind_of(next_code_point(piece, at));
        if (next == kind) continue;
        if (kind != Kind::blank) result.push_back({start + begin, start + here});
        begin = here;
        kind = next;
      }
      if (kind != Kind::blank) result.push_back({start + begin, start + piece.size()});
    }
    text.set_pieces(std::move(result));
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
  AtBlanks at_blanks() const override { return AtBlanks::cuts; }
  void cut(CutText& text, PieceContext) const override {
    split_at(text, SplitBehavior::removed, is_white_space);
  }
  bool keeps_text() const override { return false; }
};

/// The patterns of well-known vocabularies: Llama 3, Qwen, o200k, DeepSeek.
AtBlanks known_at_blanks(const SpecJson& pattern) {
  static constexpr std::string_view cutting[] = {patterns::llama3, patterns::qwen2, patterns::o200k,
                                                 patterns::deepseek};
  static constexpr std::string_view harmless[] = {R"(\p{N}{1,3})", R"(\p{N})", R"(\d)",
                                                  "[一-龥぀-ゟ゠-ヿ]+"};
  const auto regex = pattern.find("Regex");
  if (regex == pattern.end()) return AtBlanks::unknown;
  const auto text = regex->get<std::string>();
  if (std::ranges::find(cutting, text) != std::end(cutting)) return AtBlanks::cuts;
  return std::ranges::find(harmless, text) != std::end(harmless) ? AtBlanks::nothing : AtBlanks::unknown;
}

class PatternSplit final : public PreTokenizer {
 public:
  explicit PatternSplit(const SpecJson& part)
      : pattern_(part.at("pattern")),
        behavior_(split_behavior(part.at("behavior").get<std::string>())),
        invert_(option(part, "invert", false)),
        at_blanks_(behavior_ == SplitBehavior::isolated && !invert_ ? known_at_blanks(part.at("pattern"))
                                                                    : AtBlanks::unknown) {}
  AtBlanks at_blanks() const override { return at_blanks_; }

  void cut(CutText& text, PieceContext) const override {
    split_pieces(text, behavior_, invert_,
                 [&](std::string_view piece, const auto& use) { pattern_.for_each_match(piece, use); });
  }
  bool keeps_text() const override { return behavior_ != SplitBehavior::removed; }

 private:
  TextPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
  AtBlanks at_blanks_;
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
  void cut(CutText& text, PieceContext) const override {
    split_at(text, SplitBehavior::removed, [&](char32_t c) { return c == delimiter_; });
  }
  bool keeps_text() const override { return false; }

 private:
  char32_t delimiter_ = 0;
};

class Digits final : public PreTokenizer {
 public:
  AtBlanks at_blanks() const override { return AtBlanks::nothing; }
  explicit Digits(const SpecJson& part)
      : behavior_(option(part, "individual_digits", false) ? SplitBehavior::isolated
                                                           : SplitBehavior::contiguous) {}
  void cut(CutText& text, PieceContext) const override { split_at(text, behavior_, is_number); }
  bool keeps_text() const override { return true; }

 private:
  SplitBehavior behavior_;
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(const SpecJson& part)
      : behavior_(split_behavior(option(part, "behavior", "Isolated"))) {}
  void cut(CutText& text, PieceContext) const override { split_at(text, behavior_, is_bert_punctuation); }
  bool keeps_text() const override { return behavior_ != SplitBehavior::removed; }

 private:
  SplitBehavior behavior_;
};

/// Pieces of equally many characters.
class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(const SpecJson& part) : length_(option(part, "length", int64_t{5})) {
    if (length_ < 1) throw DataError("tokenizer.json: FixedLength's length is less than 1");
  }
  void cut(CutText& text, PieceContext) const override {
    std::vector<TextRange> result;
    for (size_t i = 0; i < text.size(); ++i) {
      const TextRange piece = text.range(i);
      int64_t n = 0;
      for (size_t at = piece.begin, begin = at; at < piece.end;) {
        next_code_point(text.whole().text(), at);
        if (++n < length_ && at < piece.end) continue;
        result.push_back({begin, at});
        begin = at;
        n = 0;
      }
    }
    text.set_pieces(std::move(result));
  }
  bool keeps_text() const override { return true; }

 private:
  int64_t length_;
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  /// After a cut, the other parts see the pieces only.
  AtBlanks at_blanks() const override {
    for (const auto& part : parts_) {
      if (part->at_blanks() != AtBlanks::nothing) return part->at_blanks();
    }
    return AtBlanks::nothing;
  }
  explicit PreTokenizerSequence(const SpecJson& part) {
    for (const auto& each : part.at("pretokenizers")) {
      if (auto made = make_pre_tokenizer(each)) parts_.push_back(std::move(made));
    }
  }
  void cut(CutText& text, PieceContext context) const override {
    for (const auto& part : parts_) part->cut(text, context);
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

CutText::CutText(AlignedText text) : text_(std::move(text)) {
  if (text_.size() > 0) pieces_.push_back({0, text_.size()});
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
  if (type == "FixedLength") return std::make_unique<FixedLength>(part);
  if (type == "Sequence") return std::make_unique<PreTokenizerSequence>(part);
  refuse_part("the pre-tokenizer", type);
}

}  // namespace zoo
