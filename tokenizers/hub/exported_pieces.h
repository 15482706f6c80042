#pragma once
// A model of SentencePiece as the files from which Hugging Face transformers makes a tokenizer with the same
// ids.

#include <array>
#include <map>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "tokenizers/hub/exported_vocabulary.h"
#include "tokenizers/hub/text_frame.h"

namespace zoo {

enum class PieceKind { text, unknown, control, byte };

struct ExportedPiece {
  std::string text;  // blanks are "▁"
  float score = 0;
  PieceKind kind = PieceKind::text;
};

/// Where a blank is put before the text: each line, nowhere, or the whole text, as SentencePiece does it.
enum class MarkedPlaces { lines, nothing, text };
/// Whether several blanks are one, and none at the ends.
enum class SeveralBlanks { stay, are_one };

/// How characters that SentencePiece would take for blanks are hidden in a text: each of these becomes the
/// next one. The last two are no characters, so every character has a stand-in of its own.
inline constexpr auto kHiding =
    std::to_array<const char*>({"\xE2\x96\x81", "\xF4\x8F\xBF\xBD", "\xF4\x8F\xBF\xBE", "\xF4\x8F\xBF\xBF"});
/// The patterns for the places of marks in a tokenizer.json: where a text begins that is not empty, or a
/// line.
inline constexpr const char *kTextStart = R"((?<![\s\S])(?=[\s\S]))", *kLineStart = R"((?<![^\n])(?=[^\n]))";

struct ExportedPieces {
  std::vector<ExportedPiece> pieces;  // by id
  SentencePieceModel algorithm = SentencePieceModel::unigram;
  std::vector<ExportedToken> special;
  std::string unknown;  // the piece for what has no other one
  /// SentencePiece's rules of characters (nfkc); empty: texts stay as they are.
  std::string charsmap;
  MarkedPlaces marks = MarkedPlaces::lines;
  SeveralBlanks blanks = SeveralBlanks::stay;
  /// Whether the line break is a token, so that lines are encoded one by one.
  bool has_line_break = false;
  /// Whether characters are hidden as kHiding says.
  bool hides_marks = false;
  LetterCase letters = LetterCase::as_written;
  TextFrame frame = {};
};

/// tokenizer.json, a Unigram or a BPE with tokens for bytes, and tokenizer_config.json. Throws DataError if
/// the merges of a BPE cannot be told from its scores.
std::map<std::string, std::string> export_pieces(const ExportedPieces& exported);

}  // namespace zoo
