#pragma once
// How a tokenizer.json with a BPE of SentencePiece treats the blanks of a text, in the terms of llama.cpp.

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// llama.cpp cuts a text at the tokens that stand by themselves, writes each blank as a mark, and may put one
/// before each part.
struct SentencePieceBlanks {
  bool before_parts = false;
  /// The token of the line break, if it stands by itself: it has no text but this one there.
  std::string apart = {};
};

/// Throws ConfigError if the normalizer or the pre_tokenizer does anything else. Characters that hide a mark
/// in a text (tokenizers/hub/exported_pieces.h) are left out: llama.cpp takes such a mark for a blank.
SentencePieceBlanks sentencepiece_blanks(const nlohmann::json& document);

}  // namespace zoo
