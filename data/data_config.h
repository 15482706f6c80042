#pragma once
// The `data:` part of a configuration.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/audio_config.h"
#include "data/choices_config.h"
#include "data/image_config.h"
#include "data/structure_config.h"
#include "io/config/config_file.h"
#include "io/config/config_path.h"

namespace zoo {

enum class TokenizerKind { character, byte, sentencepiece, hub, bpe, wordpiece };
constexpr auto config_names(TokenizerKind) {
  return std::to_array<std::string_view>({"char", "byte", "sentencepiece", "hub", "bpe", "wordpiece"});
}

/// SentencePiece's two training algorithms.
enum class SentencePieceModel { unigram, bpe };
constexpr auto config_names(SentencePieceModel) {
  return std::to_array<std::string_view>({"unigram", "bpe"});
}

/// What SentencePiece does to a text before it cuts it into pieces:
///   none  nothing: with byte_fallback, decoding gives every text back. Each line is read with a blank
///         before it, so that a word is the same piece at the beginning of a line and within it
///   nfkc  NFKC (fullwidth letters, ligatures and the like become usual ones) and one blank for a run of
///         blanks, which decoding cannot give back. A text is read with a blank before it
enum class TextNormalization { nfkc, none };
constexpr auto config_names(TextNormalization) { return std::to_array<std::string_view>({"nfkc", "none"}); }

/// Whether a tokenizer of this kind learns its vocabulary, of config.vocab_size tokens, from a corpus.
constexpr bool learns_vocabulary(TokenizerKind kind) {
  return kind == TokenizerKind::sentencepiece || kind == TokenizerKind::bpe ||
         kind == TokenizerKind::wordpiece;
}

struct TokenizerConfig {
  TokenizerKind type = TokenizerKind::sentencepiece;
  int64_t vocab_size = 8000;                               // of those that are trained
  SentencePieceModel model = SentencePieceModel::unigram;  // sentencepiece only
  double character_coverage = 1.0;                         // sentencepiece only
  // sentencepiece only. The defaults lose nothing of a text: `none` and true. A model from `path` has its
  // own.
  std::optional<TextNormalization> normalization;
  std::optional<bool> byte_fallback;  // unknown characters become bytes, not unk
  /// Default: those that are trained have them, so that other tasks can use the vocabulary; others if the
  /// task needs them.
  std::optional<bool> special_tokens;
  bool lowercase = false;  // fold case before anything else
  /// sentencepiece: use this model instead of training one. hub: the directory with the tokenizer's files.
  ConfigPath path;
};
void describe(ConfigVisitor& v, TokenizerConfig& c);

/// How a text file is divided into documents. An end-of-sequence token ends each document.
enum class DocumentSplit { none, line, blank_line, percent };
constexpr auto config_names(DocumentSplit) {
  return std::to_array<std::string_view>({"none", "line", "blank_line", "percent"});
}

/// What has a label in token_classification.
enum class LabelUnit {
  automatic,  // a character in texts that are one word, else a word
  word,       // words are separated by blanks
  character
};
constexpr auto config_names(LabelUnit) {
  return std::to_array<std::string_view>({"auto", "word", "character"});
}

struct DataConfig {
  /// Files. For text_to_text each is a prefix, PREFIX.source and PREFIX.target, or a table. For
  /// speech_recognition each is a list of recordings; for structure_prediction a folder of structures. For
  /// choices each is a file of questions (text/choice_questions.h).
  std::vector<ConfigPath> train, valid, test;
  /// Without `valid`: share of the training text, from its end, that becomes the validation split.
  double valid_fraction = 0.1;
  DocumentSplit documents = DocumentSplit::none;
  /// language_modeling: the files are conversations (text/conversations.h), whose answers are
  /// predicted.
  bool chat = false;
  std::string source = "de", target = "en";  // text_to_text: file name suffixes
  /// Names of the text column of a table. The first one that it has is used.
  std::vector<std::string> text_column = {"sentence", "text"};
  /// text_classification: names of the column of second texts. None: a text is classified, not a pair.
  std::vector<std::string> pair_column = {};
  std::string label_column = "label";
  /// Rows of a table with equal entries in this column belong together, such as the sentences of an article
  /// or the recordings of a speaker: comparisons of models draw and exchange them together.
  std::string document_column;
  std::string label_separator = ",";            // of problem: multi_label: between the labels of one input
  LabelUnit label_unit = LabelUnit::automatic;  // token_classification
  /// marked_tokens: the token after each of these is predicted; default "=".
  std::optional<std::string> answer_mark;
  int64_t sequence_length = 256;         // longest sequence in tokens; longer ones are cut
  std::optional<int64_t> target_length;  // text_to_text: of the target side; default sequence_length
  /// language_modeling: number of tokens at the start of each window that are given, not predicted. The
  /// encoder of an encoder_decoder reads them (default half of sequence_length). A decoder is trained on all
  /// tokens and evaluated on the tokens after them (default 1), so that both families can be compared.
  std::optional<int64_t> prefix_length;
  /// language_modeling by a decoder: share of the documents that are read as beginning, end, middle, so that
  /// a model learns to fill a gap (text/batches/infilling.h).
  double fill_in_the_middle = 0;
  /// fill_in_the_middle: share of these documents whose end is read before their beginning, as StarCoder's
  /// are.
  double suffix_first = 0.5;
  bool bucket_by_length = true;  // batches of similar lengths: less padding
  // Masked language modelling (BERT, Devlin et al. 2019, section 3.1).
  double mask_probability = 0.15;  // share of the tokens to predict
  double mask_replace = 0.8;       // share of the predicted tokens that <mask> replaces
  double mask_random = 0.1;        // share of them that a random token replaces; the rest are kept
  double hide_probability = 0;  // token_classification: share of the tokens that <mask> replaces in training
  ChoicesConfig choices;
  ImageConfig images;
  AudioConfig audio;
  StructureConfig structures;
  TokenizerConfig tokenizer;
};
void describe(ConfigVisitor& v, DataConfig& c);
/// Checks across keys.
void validate(const DataConfig& c, const Complain& complain);

/// Pins the paths of the files that are there, so that they lead to the same files from any working
/// directory.
void pin_files(DataConfig& c);

/// The file that `path` leads to. Throws DataError if there is none: the message names all places in which it
/// was looked for, and scripts/get_data.sh if the first folder is a corpus that this script can get.
std::filesystem::path data_path(const ConfigPath& path);
/// The same for a path that may lead to a directory.
std::filesystem::path data_file_or_directory(const ConfigPath& path);

}  // namespace zoo
