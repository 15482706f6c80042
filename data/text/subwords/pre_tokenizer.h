#pragma once
// Where a text is cut before a model sees its pieces: the member "pre_tokenizer" of a tokenizer.json.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace zoo {

/// A text in pieces. None of them is empty.
class CutText {
 public:
  explicit CutText(std::string text);

  size_t size() const { return ends_.size(); }
  std::string_view piece(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  /// Appends a piece, unless it is empty.
  void append(std::string_view piece);

 private:
  std::string text_;
  std::vector<size_t> ends_;  // of the pieces
};

/// Whether a text begins the input, or follows something else. Some pre-tokenizers put a blank before the
/// former only; none does before a continuation.
enum class PieceContext { first, later, continuation };

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Cuts the pieces of `text` further. `context` is that of its first piece; the others are `later`.
  virtual CutText cut(const CutText& text, PieceContext context) const = 0;
  /// Whether the pieces, joined, are the text, apart from how it is written.
  virtual bool keeps_text() const = 0;
};

/// ByteLevel, BertPreTokenizer, Whitespace, WhitespaceSplit, Split, Metaspace, Digits, Punctuation,
/// CharDelimiterSplit, Sequence; nothing for null. Throws DataError for another one, nlohmann's exceptions
/// for a damaged one.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& part);

}  // namespace zoo
