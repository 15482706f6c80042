#pragma once
// From a piece of a text to tokens: the member "model" of a tokenizer.json.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizers/subwords/vocabulary.h"

namespace zoo {

/// A token, and the bytes of the piece that it stands for.
struct SubwordToken {
  int64_t id;
  size_t begin, end;
};

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  /// Appends the tokens of `piece`, which is UTF-8. Pieces with equal text have equal tokens.
  virtual void append_tokens(std::string_view piece, std::vector<SubwordToken>& tokens) const = 0;
  void append_ids(std::string_view piece, std::vector<int64_t>& ids) const;
  virtual const SubwordVocabulary& vocabulary() const = 0;
  /// Whether a text without unknown characters can be put together from its tokens.
  virtual bool keeps_text() const = 0;
};

/// BPE, WordPiece, Unigram or WordLevel. Throws DataError for another model, nlohmann's exceptions for a
/// damaged one.
std::unique_ptr<SubwordModel> make_subword_model(const nlohmann::json& part);

}  // namespace zoo
