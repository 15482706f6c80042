#pragma once
// The unigram language model (Kudo 2018, https://arxiv.org/abs/1804.10959): of all ways to cut a piece into
// tokens, the one with the largest sum of their scores.

#include <string>
#include <vector>

#include "tokenizers/subwords/subword_model.h"

namespace zoo {

class Unigram final : public SubwordModel {
 public:
  /// vocab: [[token, score], …].
  explicit Unigram(const nlohmann::json& part);

  /// Unknown characters that follow each other are one unk, or their bytes. Throws DataError for one if there
  /// is no unk.
  void append_tokens(std::string_view piece, std::vector<SubwordToken>& tokens) const override;
  const SubwordVocabulary& vocabulary() const override { return vocabulary_; }
  bool keeps_text() const override { return false; }

 private:
  struct Cut;
  std::vector<Cut> best_cuts(std::string_view piece) const;
  void append_unknown(std::string_view piece, size_t begin, size_t end,
                      std::vector<SubwordToken>& tokens) const;

  SubwordVocabulary vocabulary_;
  std::vector<double> scores_;
  TokenTrie trie_;
  std::vector<int64_t> byte_ids_;  // of <0x00> … <0xFF>, with byte_fallback only
  double unk_score_ = 0;
  int64_t unk_ = -1;
  bool byte_fallback_;
};

}  // namespace zoo
