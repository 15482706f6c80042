#pragma once
// WordPiece (Schuster & Nakajima 2012; BERT, https://arxiv.org/abs/1810.04805): the longest token that begins
// a word, then the longest one that continues it, and so on.

#include <string>

#include "tokenizers/subwords/subword_model.h"

namespace zoo {

class WordPiece final : public SubwordModel {
 public:
  explicit WordPiece(const nlohmann::json& part);

  /// One unk for a word that is too long, or that tokens cannot make.
  void append_tokens(std::string_view piece, std::vector<SubwordToken>& tokens) const override;
  const SubwordVocabulary& vocabulary() const override { return vocabulary_; }
  bool keeps_text() const override { return false; }

 private:
  SubwordVocabulary vocabulary_;
  std::string prefix_;
  int64_t unk_, most_characters_;
};

}  // namespace zoo
