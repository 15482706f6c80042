#pragma once
// One token for each byte. It needs no training and has no unknown characters.

#include "tokenizers/tokenizer.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {

/// Ids: the special tokens if any, then bytes 0 … 255.
class ByteTokenizer : public Tokenizer {
 public:
  ByteTokenizer(SpecialTokenSet special, bool lowercase);
  /// From a saved file. Throws DataError if its special tokens have other ids than in this program.
  explicit ByteTokenizer(TokenizerFile file);

  TokenIds encode(std::string_view text) const override;
  /// Every byte stands for the whole code point that it is a part of.
  std::vector<PlacedToken> encode_with_places(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string label(int64_t id) const override;
  bool keeps_text() const override { return !file_.lowercase; }
  int64_t vocab_size() const override { return first_ + 256; }
  const SpecialTokens& special() const override { return file_.special; }
  void save(const std::filesystem::path& run_dir) const override { write_tokenizer_file(run_dir, file_); }
  std::map<std::string, std::string> exported_files(const TextFrame& frame) const override;
  std::string fingerprint() const override { return to_json(file_); }

 private:
  TokenizerFile file_;
  int64_t first_;  // id of byte 0
};

}  // namespace zoo
