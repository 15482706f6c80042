#pragma once
// Where a text is cut before a model sees its pieces: the member "pre_tokenizer" of a tokenizer.json.

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizers/subwords/aligned_text.h"

namespace zoo {

/// A text in pieces. None of them is empty.
class CutText {
 public:
  explicit CutText(AlignedText text);

  size_t size() const { return pieces_.size(); }
  std::string_view piece(size_t i) const {
    return std::string_view(text_.text()).substr(pieces_[i].begin, pieces_[i].size());
  }
  /// Where a piece stands in whole().
  const TextRange& range(size_t i) const { return pieces_[i]; }
  const AlignedText& whole() const { return text_; }

  /// The same text with other pieces.
  void set_pieces(std::vector<TextRange> pieces) { pieces_ = std::move(pieces); }
  /// Another text with its pieces.
  void set(AlignedText text, std::vector<TextRange> pieces) {
    text_ = std::move(text);
    pieces_ = std::move(pieces);
  }

 private:
  AlignedText text_;
  std::vector<TextRange> pieces_;
};

/// Whether a text begins the input, or follows something else. Some pre-tokenizers put a blank before the
/// former only; none does before a continuation.
enum class PieceContext { first, later, continuation };

/// What a pre-tokenizer does at a blank between two letters of ASCII, whatever stands further away.
enum class AtBlanks {
  unknown,
  nothing,  // whether the text goes on there changes no other piece
  cuts      // a piece ends before the blank
};

struct PreTokenizer {
  /// Cuts the pieces of `text` further. `context` is that of its first piece; the others are `later`.
  std::function<void(CutText& text, PieceContext context)> cut;
  /// Whether the pieces, joined, are the text, apart from how it is written.
  bool keeps_text = false;
  AtBlanks at_blanks = AtBlanks::unknown;
};

/// ByteLevel, BertPreTokenizer, Whitespace, WhitespaceSplit, Split, Metaspace, Digits, Punctuation,
/// CharDelimiterSplit, FixedLength, Sequence; nothing for null. Throws DataError for another one, nlohmann's
/// exceptions for a damaged one.
std::optional<PreTokenizer> make_pre_tokenizer(const nlohmann::json& part);

}  // namespace zoo
