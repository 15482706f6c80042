#pragma once
// From a piece of a text to tokens: the member "model" of a tokenizer.json.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/text/subwords/vocabulary.h"

namespace zoo {

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  /// Appends the ids of `piece`, which is UTF-8. Pieces with equal text have equal ids.
  virtual void append_ids(std::string_view piece, std::vector<int64_t>& ids) const = 0;
  virtual const SubwordVocabulary& vocabulary() const = 0;
  /// Whether a text without unknown characters can be put together from its tokens.
  virtual bool keeps_text() const = 0;
};

/// BPE or WordPiece. Throws DataError for another model, nlohmann's exceptions for a damaged one.
std::unique_ptr<SubwordModel> make_subword_model(const nlohmann::json& part);

}  // namespace zoo
