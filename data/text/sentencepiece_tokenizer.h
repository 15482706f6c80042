#pragma once
// Pieces of words, by SentencePiece (Kudo & Richardson 2018): unigram language model or byte-pair encoding,
// trained in this process.

#include <memory>

#include "data/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace zoo {

/// Ids of a trained one: pad, unk, bos, eos, mask, cls, sep = 0 … 6 (unk alone = 0 with
/// SpecialTokenSet::none), then, if the training text has line breaks, the line break, then the pieces. Text
/// is normalised (NFKC, runs of blanks to one), so decode(encode(text)) is `text` after that.
class SentencePieceTokenizer : public Tokenizer {
 public:
  /// Deterministic. Throws DataError: an empty corpus, not UTF-8, a vocabulary that this text cannot have
  /// (says the nearest possible size).
  static std::unique_ptr<SentencePieceTokenizer> train(const TextReader& corpus,
                                                       const TokenizerConfig& config,
                                                       SpecialTokenSet special);
  /// A model file's content. Its own pad, unk, bos, eos are taken, and <mask>, <cls>, <sep> (or [MASK],
  /// [CLS], [SEP]) where it has them. Throws DataError where it is no model.
  SentencePieceTokenizer(std::string model, bool lowercase);
  /// What save() wrote. Throws CheckpointError.
  static std::unique_ptr<SentencePieceTokenizer> load(const std::filesystem::path& run_dir);
  ~SentencePieceTokenizer() override;

  TokenIds encode(std::string_view text) const override;
  TokenIds encode_continuation(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  std::string label(int64_t id) const override;
  int64_t vocab_size() const override { return vocab_size_; }
  const SpecialTokens& special() const override { return special_; }
  void save(const std::filesystem::path& run_dir) const override;
  std::string fingerprint() const override;

 private:
  std::string model_;  // serialised, as RUN/tokenizer.model has it
  bool lowercase_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  SpecialTokens special_;
  int64_t vocab_size_ = 0;
};

}  // namespace zoo
