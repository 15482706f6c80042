#pragma once
// A model of SentencePiece as the files from which Hugging Face transformers makes a tokenizer with the same
// ids.

#include <map>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "data/text/exports/exported_vocabulary.h"
#include "data/text/hub/text_frame.h"

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
  /// How characters that SentencePiece takes for blanks are hidden, each by the next one.
  std::vector<std::string> hiding;
  LetterCase letters = LetterCase::as_written;
  TextFrame frame = {};
};

/// tokenizer.json, a Unigram or a BPE with tokens for bytes, and tokenizer_config.json. Throws DataError if
/// the merges of a BPE cannot be told from its scores.
std::map<std::string, std::string> export_pieces(const ExportedPieces& exported);

}  // namespace zoo
