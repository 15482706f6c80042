#include "tokenizers/subwords/pre_tokenizer.h"

#include <algorithm>
#include <map>
#include <memory>
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

/// A blank before every piece that has none.
void add_blanks(CutText& text, PieceContext context) {
  PieceWriter to(text);
  for (size_t i = 0; i < text.size(); ++i) {
    to.begin_piece();
    const bool is_continuation = i == 0 && context == PieceContext::continuation;
    if (!is_continuation && !text.piece(i).starts_with(' ')) to.append(" ", first_character(text, i));
    to.keep(text.range(i));
  }
  to.finish();
}

void write_bytes_as_characters(CutText& text) {
  PieceWriter to(text);
  for (size_t i = 0; i < text.size(); ++i) {
    to.begin_piece();
    const auto piece = text.piece(i);
    const TextRange range = text.range(i);
    const size_t step = text.whole().alignment() == Alignment::dropped ? piece.size() : 1;
    for (size_t at = 0; at < piece.size(); at += step)
      to.append(as_characters(piece.substr(at, step)), {range.begin + at, range.begin + at + step});
  }
  to.finish();
}

PreTokenizer cut_byte_level(const SpecJson& part) {
  const bool adds_blank = option(part, "add_prefix_space", true);
  std::shared_ptr<const Pattern> words;
  if (option(part, "use_regex", true)) {
    words = std::make_shared<const Pattern>(
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  }
  const auto cut = [=](CutText& text, PieceContext context) {
    if (adds_blank) add_blanks(text, context);
    if (words) {
      split_pieces(text, SplitBehavior::isolated, false,
                   [&](std::string_view piece, const auto& use) { words->for_each_match(piece, use); });
    }
    write_bytes_as_characters(text);
  };
  // Without the pattern, blanks are not seen any more.
  return {cut, !adds_blank, words ? AtBlanks::cuts : AtBlanks::unknown};
}

/// The only character of a text. Throws DataError for another text, which is `what`.
char32_t single_character(const std::string& text, const char* what) {
  size_t end = 0;
  const char32_t c = text.empty() ? 0 : next_code_point(text, end);
  if (text.empty() || end != text.size())
    throw DataError(fmt::format("tokenizer.json: {} is not one character", what));
  return c;
}

/// Writes `mark` for each blank, and, as `scheme` says, before pieces without one.
void mark_blanks(CutText& text, PieceContext context, const std::string& mark, std::string_view scheme) {
  PieceWriter to(text);
  for (size_t i = 0; i < text.size(); ++i) {
    to.begin_piece();
    const auto piece = text.piece(i);
    const size_t start = text.range(i).begin;
    const auto here = i == 0 ? context : PieceContext::later;
    const bool wants_mark = here != PieceContext::continuation &&
                            (scheme == "always" || (scheme == "first" && here == PieceContext::first));
    if (wants_mark && !piece.starts_with(mark) && !piece.starts_with(' '))
      to.append(mark, first_character(text, i));
    for (size_t done = 0; done < piece.size();) {
      const size_t blank = std::min(piece.find(' ', done), piece.size());
      if (blank > done) to.keep({start + done, start + blank});
      if (blank < piece.size()) to.append(mark, {start + blank, start + blank + 1});
      done = blank + 1;
    }
  }
  to.finish();
}

PreTokenizer cut_metaspace(const SpecJson& part) {
  const auto mark = option(part, "replacement", "▁");
  const bool splits = option(part, "split", true);
  single_character(mark, "Metaspace's replacement");
  const auto scheme =
      option(part, "prepend_scheme", option(part, "add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") refuse_part("the prepend_scheme", scheme);
  const auto cut = [=](CutText& text, PieceContext context) {
    mark_blanks(text, context, mark, scheme);
    if (!splits) return;
    split_pieces(text, SplitBehavior::merged_with_next, false, [&](std::string_view piece, const auto& use) {
      for (size_t at = piece.find(mark); at != piece.npos; at = piece.find(mark, at + mark.size()))
        use(at, at + mark.size());
    });
  };
  return {cut, false, splits ? AtBlanks::cuts : AtBlanks::unknown};
}

/// Cuts at the characters of a kind.
template <class IsMatch>
PreTokenizer at_characters(SplitBehavior behavior, const IsMatch& is_match, AtBlanks at_blanks) {
  return {[=](CutText& text, PieceContext) { split_at(text, behavior, is_match); },
          behavior != SplitBehavior::removed, at_blanks};
}

PreTokenizer cut_bert_words(const SpecJson&) {
  const auto cut = [](CutText& text, PieceContext) {
    split_at(text, SplitBehavior::removed, is_white_space);
    split_at(text, SplitBehavior::isolated, is_bert_punctuation);
  };
  return {cut, false, AtBlanks::cuts};
}

PreTokenizer cut_words(const SpecJson&) {
  return at_characters(SplitBehavior::removed, is_white_space, AtBlanks::cuts);
}

enum class CharacterKind { blank, word, symbol };
CharacterKind kind_of(char32_t c) {
  return is_word_character(c) ? CharacterKind::word
         : is_white_space(c)  ? CharacterKind::blank
                              : CharacterKind::symbol;
}

/// Runs of word characters, and runs of others, without blanks.
PreTokenizer cut_words_and_symbols(const SpecJson&) {
  const auto cut = [](CutText& text, PieceContext) {
    std::vector<TextRange> result;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto piece = text.piece(i);
      const size_t start = text.range(i).begin;
      auto kind = CharacterKind::blank;
      size_t begin = 0;
      for (size_t at = 0; at < piece.size();) {
        const size_t here = at;
        const auto next = kind_of(next_code_point(piece, at));
        if (next == kind) continue;
        if (kind != CharacterKind::blank) result.push_back({start + begin, start + here});
        begin = here;
        kind = next;
      }
      if (kind != CharacterKind::blank) result.push_back({start + begin, start + piece.size()});
    }
    text.set_pieces(std::move(result));
  };
  return {cut, false, AtBlanks::cuts};
}

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

PreTokenizer cut_at_pattern(const SpecJson& part) {
  const auto pattern = std::make_shared<const TextPattern>(part.at("pattern"));
  const auto behavior = split_behavior(part.at("behavior").get<std::string>());
  const bool invert = option(part, "invert", false);
  const auto cut = [=](CutText& text, PieceContext) {
    split_pieces(text, behavior, invert,
                 [&](std::string_view piece, const auto& use) { pattern->for_each_match(piece, use); });
  };
  const bool is_plain = behavior == SplitBehavior::isolated && !invert;
  return {cut, behavior != SplitBehavior::removed,
          is_plain ? known_at_blanks(part.at("pattern")) : AtBlanks::unknown};
}

PreTokenizer cut_at_delimiter(const SpecJson& part) {
  const char32_t delimiter =
      single_character(part.at("delimiter").get<std::string>(), "CharDelimiterSplit's delimiter");
  return at_characters(SplitBehavior::removed, [=](char32_t c) { return c == delimiter; }, AtBlanks::unknown);
}

PreTokenizer cut_digits(const SpecJson& part) {
  const bool are_single = option(part, "individual_digits", false);
  return at_characters(are_single ? SplitBehavior::isolated : SplitBehavior::contiguous, is_number,
                       AtBlanks::nothing);
}

PreTokenizer cut_punctuation(const SpecJson& part) {
  return at_characters(split_behavior(option(part, "behavior", "Isolated")), is_bert_punctuation,
                       AtBlanks::unknown);
}

/// Pieces of equally many characters.
PreTokenizer cut_fixed_length(const SpecJson& part) {
  const auto length = option(part, "length", int64_t{5});
  if (length < 1) throw DataError("tokenizer.json: FixedLength's length is less than 1");
  const auto cut = [length](CutText& text, PieceContext) {
    std::vector<TextRange> result;
    for (size_t i = 0; i < text.size(); ++i) {
      const TextRange piece = text.range(i);
      int64_t n = 0;
      for (size_t at = piece.begin, begin = at; at < piece.end;) {
        next_code_point(text.whole().text(), at);
        if (++n < length && at < piece.end) continue;
        result.push_back({begin, at});
        begin = at;
        n = 0;
      }
    }
    text.set_pieces(std::move(result));
  };
  return {cut, true};
}

PreTokenizer cut_sequence(const SpecJson& part) {
  std::vector<PreTokenizer> parts;
  for (const auto& each : part.at("pretokenizers")) {
    if (auto made = make_pre_tokenizer(each)) parts.push_back(std::move(*made));
  }
  // After a cut, the other parts see the pieces only.
  const auto first =
      std::ranges::find_if(parts, [](const auto& each) { return each.at_blanks != AtBlanks::nothing; });
  const auto at_blanks = first == parts.end() ? AtBlanks::nothing : first->at_blanks;
  const bool keep_text = std::ranges::all_of(parts, &PreTokenizer::keeps_text);
  return {[parts = std::move(parts)](CutText& text, PieceContext context) {
            for (const auto& each : parts) each.cut(text, context);
          },
          keep_text, at_blanks};
}

}  // namespace

CutText::CutText(AlignedText text) : text_(std::move(text)) {
  if (text_.size() > 0) pieces_.push_back({0, text_.size()});
}

std::optional<PreTokenizer> make_pre_tokenizer(const SpecJson& part) {
  if (part.is_null()) return std::nullopt;
  static const std::map<std::string_view, PreTokenizer (*)(const SpecJson&)> makers = {
      {"ByteLevel", cut_byte_level},
      {"BertPreTokenizer", cut_bert_words},
      {"Whitespace", cut_words_and_symbols},
      {"WhitespaceSplit", cut_words},
      {"Split", cut_at_pattern},
      {"Metaspace", cut_metaspace},
      {"Digits", cut_digits},
      {"Punctuation", cut_punctuation},
      {"CharDelimiterSplit", cut_at_delimiter},
      {"FixedLength", cut_fixed_length},
      {"Sequence", cut_sequence}};
  const std::string type = type_of(part);
  const auto found = makers.find(type);
  if (found == makers.end()) refuse_part("the pre-tokenizer", type);
  return found->second(part);
}

}  // namespace zoo
