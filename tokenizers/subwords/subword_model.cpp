#include "tokenizers/subwords/subword_model.h"

#include "base/error.h"
#include "tokenizers/subwords/bpe.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/subwords/unigram.h"
#include "tokenizers/subwords/word_piece.h"

namespace zoo {
namespace {

/// Whole pieces are tokens.
class WordLevel final : public SubwordModel {
 public:
  explicit WordLevel(const nlohmann::json& part) : vocabulary_(part.at("vocab")) {
    unk_ = vocabulary_.find(option(part, "unk_token", "<unk>"));
  }

  /// Throws DataError for an unknown piece if there is no unk_token.
  void append_tokens(std::string_view piece, std::vector<SubwordToken>& tokens) const override {
    const int64_t known = vocabulary_.find(piece);
    const int64_t id = known >= 0 ? known : unk_;
    if (id < 0) throw DataError("WordLevel: the text has a word that is no token, and there is no unk_token");
    tokens.push_back({id, 0, piece.size()});
  }
  const SubwordVocabulary& vocabulary() const override { return vocabulary_; }
  bool keeps_text() const override { return false; }

 private:
  SubwordVocabulary vocabulary_;
  int64_t unk_;
};

/// Old files do not name the type.
const char* likely_type(const nlohmann::json& part) {
  if (part.contains("merges")) return "BPE";
  if (part.contains("max_input_chars_per_word")) return "WordPiece";
  const auto vocab = part.find("vocab");
  return vocab != part.end() && vocab->is_array() ? "Unigram" : "unknown";
}

}  // namespace

void SubwordModel::append_ids(std::string_view piece, std::vector<int64_t>& ids) const {
  std::vector<SubwordToken> tokens;
  append_tokens(piece, tokens);
  for (const auto& token : tokens) ids.push_back(token.id);
}

std::unique_ptr<SubwordModel> make_subword_model(const nlohmann::json& part) {
  if (!part.is_object()) throw DataError("tokenizer.json: damaged: the model is not an object");
  const auto type = option(part, "type", likely_type(part));
  if (type == "BPE") return std::make_unique<Bpe>(part);
  if (type == "WordPiece") return std::make_unique<WordPiece>(part);
  if (type == "Unigram") return std::make_unique<Unigram>(part);
  if (type == "WordLevel") return std::make_unique<WordLevel>(part);
  refuse_part("the model", type);
}

}  // namespace zoo
