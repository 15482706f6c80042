#pragma once
// Pieces of words, by SentencePiece (Kudo & Richardson 2018): unigram language model or byte-pair encoding,
// trained in this process.

#include <memory>

#include "tokenizers/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace zoo {

struct TokenizerFile;

/// Ids of a tokenizer from train(): pad, unk, bos, eos, mask, cls, sep = 0 … 6 (with SpecialTokenSet::none
/// only unk = 0), then the line break if the training text has line breaks, then bytes if there is a fallback
/// to them, then the pieces. decode(encode(text)) gives the text as data.tokenizer.normalization changes it.
/// With `none`, lines are encoded one by one, each with a blank before it, which decode() removes.
class SentencePieceTokenizer : public Tokenizer {
 public:
  /// What happens to a text outside the model.
  struct Options {
    bool lowercase = false;
    /// `none`: the model was trained with this value. It then leaves every text as it is.
    TextNormalization normalization = TextNormalization::nfkc;
    /// Whether lines have a blank before them, with `none`. Models of older runs have not.
    bool marks_lines = false;
  };

  /// Deterministic. If the text has fewer pieces than config.vocab_size, the vocabulary has the largest
  /// possible size. Throws DataError for an empty corpus, for invalid UTF-8, and for a vocabulary size that
  /// is too small for the characters of the text (the message gives the least possible size). Trains in a
  /// child process.
  static std::unique_ptr<SentencePieceTokenizer> train(const TextReader& corpus,
                                                       const TokenizerConfig& config,
                                                       SpecialTokenSet special);
  /// `model` is the content of a model file. Its own pad, unk, bos and eos are used, and <mask>, <cls>, <sep>
  /// (or [MASK], [CLS], [SEP]) if it has them. Throws DataError if it is not a model.
  SentencePieceTokenizer(std::string model, const Options& options);
  /// The options that save() wrote to `dir` for this model; the default ones if it was another model, or if
  /// `dir` has none.
  static Options saved_options(const std::filesystem::path& dir, std::string_view model);
  /// Loads what save() wrote; `file` is RUN/tokenizer.json. Throws CheckpointError.
  static std::unique_ptr<SentencePieceTokenizer> load(const std::filesystem::path& run_dir,
                                                      const TokenizerFile& file);
  ~SentencePieceTokenizer() override;

  TokenIds encode(std::string_view text) const override;
  TokenIds encode_continuation(std::string_view text) const override;
  /// The places are those of SentencePiece: a token stands for the blanks before it, too.
  std::vector<PlacedToken> encode_with_places(std::string_view text) const override;
  std::vector<PlacedToken> encode_continuation_with_places(std::string_view text) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  TokenText token_text(int64_t id) const override;
  bool begins_text_after(int64_t id) const override { return options_.marks_lines && id == line_break_; }
  std::string label(int64_t id) const override;
  int64_t vocab_size() const override { return vocab_size_; }
  bool joins_blanks() const override { return true; }
  bool keeps_text() const override;
  const SpecialTokens& special() const override { return special_; }
  void save(const std::filesystem::path& run_dir) const override;
  /// Throws DataError for a model that no tokenizer.json describes: with symbols of its users, or blanks
  /// behind words.
  std::map<std::string, std::string> exported_files(const TextFrame& frame) const override;
  std::string fingerprint() const override;

 private:
  std::string prepared(std::string_view text) const;
  void append_ids(std::string_view text, TokenIds& ids) const;
  enum class TextBegins { a_line, within_a_line };
  struct LineVisitor;
  void for_each_line(std::string_view seen, TextBegins begins, const LineVisitor& visitor) const;
  TokenIds encode_lines(std::string_view text, TextBegins begins) const;
  void append_placed(std::string_view text, std::vector<PlacedToken>& tokens) const;
  std::vector<PlacedToken> placed_lines(std::string_view text, TextBegins begins) const;
  std::vector<PlacedToken> placed_after_stand_in(std::string_view seen) const;
  std::string decode_pieces(std::span<const int64_t> ids) const;

  std::string model_;  // serialised: the content of RUN/tokenizer.model
  Options options_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
  SpecialTokens special_;
  int64_t vocab_size_ = 0;
  int64_t line_break_ = -1;  // the token of "\n": one of its own, or its byte; -1: unk
};

}  // namespace zoo
