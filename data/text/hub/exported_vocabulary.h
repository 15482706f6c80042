#pragma once
// A vocabulary of bytes or characters as the files from which Hugging Face transformers makes a tokenizer.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/text/hub/text_frame.h"

namespace zoo {

/// The kind of text that each token stands for, except special ones.
enum class SymbolKind { byte, character };
/// Whether texts are folded to lower case before they are encoded.
enum class LetterCase { as_written, folded };

struct ExportedVocabulary {
  /// The names of the special tokens, ids 0, 1, …, such as "<eos>".
  std::vector<std::string> special;
  /// The symbols, with the ids that follow. `byte`: one byte each; `character`: one code point.
  std::vector<std::string> symbols;
  SymbolKind kind = SymbolKind::character;
  LetterCase letters = LetterCase::as_written;
  /// What stands around a text, all of it special tokens.
  TextFrame frame = {};
};

/// The post_processor of a tokenizer.json that puts this frame around texts and pairs; null for an empty one.
/// `name_of` gives the text of a special token.
nlohmann::ordered_json post_processor_of(const TextFrame& frame,
                                         const std::function<std::string(int64_t id)>& name_of);

/// tokenizer.json, a byte-level BPE without merges or a WordLevel model over characters, and
/// tokenizer_config.json.
std::map<std::string, std::string> export_vocabulary(const ExportedVocabulary& vocabulary);

}  // namespace zoo
