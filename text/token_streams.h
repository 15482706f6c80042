#pragma once
// The documents of a corpus as streams of tokens.

#include <array>
#include <functional>
#include <optional>
#include <string_view>

#include "data/splits.h"
#include "text/corpus.h"
#include "tokenizers/token_store.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The documents of each split as tokens, with eos after each document if the vocabulary has one. Files that
/// train and valid share are read for both when train is wanted.
class TokenStreams {
 public:
  /// Called with each document of a split before its tokens are given.
  using Look = std::function<void(std::string_view document, Split split)>;
  /// `corpus` must outlive this object.
  explicit TokenStreams(Corpus& corpus) : corpus_(corpus) {}

  /// The tokens of a split, once; they are cached as tokenize() does it. If `look` is null, documents whose
  /// tokens are cached are not read. Throws DataError as Corpus::visit() and Tokenizer::encode() do.
  TokenStore take(Split split, const Tokenizer& tokenizer, const Look& look = nullptr);

 private:
  void read(Split split, const Tokenizer& tokenizer, const Look& look);

  Corpus& corpus_;
  std::array<std::optional<TokenStore>, 3> streams_;  // by Split
};

}  // namespace zoo
