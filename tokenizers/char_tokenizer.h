#pragma once
// One token for each code point of the training text.

#include <unordered_map>

#include "tokenizers/tokenizer.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {

/// Ids: the special tokens if any, then the symbols in the order of their code points. Without special
/// tokens, tinyshakespeare gives the vocabulary of nanoGPT's shakespeare_char.
class CharTokenizer : public Tokenizer {
 public:
  /// Takes the symbols of `corpus`. Throws DataError if it is empty or not UTF-8.
  static std::unique_ptr<CharTokenizer> train(const TextReader& corpus, SpecialTokenSet special,
                                              bool lowercase);
  /// From a saved file. Throws DataError if it has no symbols, if a symbol is not one code point or repeats,
  /// and if the ids of special tokens repeat or collide with symbols.
  explicit CharTokenizer(TokenizerFile file);

  TokenIds encode(std::string_view text) const override;
  std::vector<PlacedToken> encode_with_places(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string label(int64_t id) const override;
  bool keeps_text() const override { return !file_.lowercase; }
  int64_t vocab_size() const override { return first_ + static_cast<int64_t>(file_.symbols.size()); }
  const SpecialTokens& special() const override { return file_.special; }
  void save(const std::filesystem::path& run_dir) const override { write_tokenizer_file(run_dir, file_); }
  std::map<std::string, std::string> exported_files(const TextFrame& frame) const override;
  std::string fingerprint() const override { return to_json(file_); }

 private:
  TokenizerFile file_;
  int64_t first_;  // id of the first symbol
  std::unordered_map<char32_t, int64_t> ids_;
};

}  // namespace zoo
