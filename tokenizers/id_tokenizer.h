#pragma once
// What stands for the tokenizer of a model that came without one: ids are known, texts are not.

#include "tokenizers/tokenizer.h"

namespace zoo {

/// encode() and token_text() throw DataError: there is no tokenizer. decode() gives an empty text.
class IdTokenizer final : public Tokenizer {
 public:
  /// Ids are 0 to vocab_size - 1. Throws DataError for a special token that is none of them.
  IdTokenizer(int64_t vocab_size, SpecialTokens special);

  TokenIds encode(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  TokenText token_text(int64_t id) const override;
  std::string label(int64_t id) const override;
  int64_t vocab_size() const override { return vocab_size_; }
  bool has_texts() const override { return false; }
  bool keeps_text() const override { return false; }
  const SpecialTokens& special() const override { return special_; }
  std::optional<TextFrame> frame() const override { return TextFrame{}; }
  TokenIds never_generated() const override { return {}; }
  void save(const std::filesystem::path& run_dir) const override;

 private:
  int64_t vocab_size_;
  SpecialTokens special_;
};

}  // namespace zoo
