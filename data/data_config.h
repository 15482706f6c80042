#pragma once
// The `data:` part of a configuration.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"

namespace zoo {

enum class TokenizerKind { character, byte, sentencepiece };
constexpr auto config_names(TokenizerKind) {
  return std::to_array<std::string_view>({"char", "byte", "sentencepiece"});
}

/// SentencePiece's two training algorithms.
enum class SentencePieceModel { unigram, bpe };
constexpr auto config_names(SentencePieceModel) {
  return std::to_array<std::string_view>({"unigram", "bpe"});
}

struct TokenizerConfig {
  TokenizerKind type = TokenizerKind::sentencepiece;
  int64_t vocab_size = 8000;                               // sentencepiece only
  SentencePieceModel model = SentencePieceModel::unigram;  // sentencepiece only
  double character_coverage = 1.0;                         // sentencepiece only
  bool lowercase = false;                                  // fold case before anything else
  std::string path;  // an existing SentencePiece model instead of training one
};
void describe(ConfigVisitor& v, TokenizerConfig& c);

/// What in a text file is one document. Documents are joined by an end-of-sequence token.
enum class DocumentSplit { none, line, blank_line, percent };
constexpr auto config_names(DocumentSplit) {
  return std::to_array<std::string_view>({"none", "line", "blank_line", "percent"});
}

struct DataConfig {
  std::vector<std::string> train, valid,
      test;                     // files; for text_to_text each is a prefix: PREFIX.source, PREFIX.target
  double valid_fraction = 0.1;  // of the training text's end, where `valid` is not given
  DocumentSplit documents = DocumentSplit::none;
  std::string source = "de", target = "en";             // text_to_text: file name suffixes
  std::vector<std::string> text_column = {"sentence"};  // of a tab-separated file, by its header: the first
  std::string label_column = "label";                   // of these names that is there
  int64_t sequence_length = 256;                        // longest sequence in tokens; longer ones are cut
  std::optional<int64_t> target_length;  // text_to_text: of the target side; default sequence_length
  /// language_modeling: tokens of each window that are given before prediction begins. An encoder_decoder
  /// reads them with its encoder (default half of sequence_length); a decoder is trained on all tokens and
  /// evaluated on those after them (default 1), so that the two can be compared.
  std::optional<int64_t> prefix_length;
  bool bucket_by_length = true;  // batches of similar lengths: less padding
  // Masked language modelling: what is hidden, and how (BERT, Devlin et al. 2019, section 3.1).
  double mask_probability = 0.15;
  double mask_replace = 0.8;  // of the hidden ones: replaced by <mask>
  double mask_random = 0.1;   // of the hidden ones: replaced by a random token; the rest are kept
  TokenizerConfig tokenizer;
};
void describe(ConfigVisitor& v, DataConfig& c);
/// Checks across keys.
void validate(const DataConfig& c, const Complain& complain);

/// $ZOO_DATA, else ./data.
std::filesystem::path data_root();
/// `path` itself if absolute, else below the data root. Throws DataError if there is no such file, naming
/// scripts/get_data.sh where the first folder is a corpus that it can get.
std::filesystem::path data_path(const std::string& path);

}  // namespace zoo
