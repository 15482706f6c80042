#pragma once
// Where the words or characters of a text are among its tokens.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace zoo {

/// The tokens of a text, without special tokens, and the first token of each word or character.
struct AlignedTokens {
  TokenIds ids;
  /// For each unit that was read the index of its first token; -1 = it has no token.
  std::vector<int64_t> first;
  /// Whether the text has more tokens than these.
  bool cut = false;
};

/// Encodes texts word by word, or character by character, as each stands in its text: a word after another
/// one is encoded with the blank before it. A blank that is a token of its own does not belong to the word. A
/// unit that the tokenizer removes, such as U+200B for BERT's, has no token, as with transformers'
/// is_split_into_words.
class UnitEncoder {
 public:
  /// `tokenizer` outlives this object.
  explicit UnitEncoder(const Tokenizer& tokenizer);
  /// The first `most_tokens` tokens of a text, and the units up to there. Throws DataError as
  /// Tokenizer::encode().
  AlignedTokens operator()(std::string_view text, LabelUnit unit, int64_t most_tokens);

 private:
  struct Unit {
    TokenIds ids;
    int64_t first = 0;  // behind a blank; -1 = no token of its own
  };
  Unit encode(std::string_view unit, LabelUnit kind, bool is_first) const;

  const Tokenizer& tokenizer_;
  TokenIds blank_;  // the tokens of a blank that belong to no word
  std::unordered_map<std::string, Unit> known_;
};

}  // namespace zoo
