#pragma once
// A vocabulary of bytes or characters as the files from which Hugging Face transformers makes a tokenizer.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tokenizers/hub/text_frame.h"

namespace zoo {

/// The kind of text that each token stands for, except special ones.
enum class SymbolKind { byte, character };
/// Whether texts are folded to lower case before they are encoded.
enum class LetterCase { as_written, folded };

/// A special token, with what transformers calls it: "<eos>" is its eos_token.
struct ExportedToken {
  int64_t id = 0;
  std::string content, role;
};

/// Whether the blanks before a mask are part of the token that it hides.
enum class BlanksBeforeMask { stay, belong_to_mask };

/// The normalizers that put letters in lower case as lowercase() does (tokenizers/unicode/lowercase.h).
nlohmann::ordered_json folding_steps();

/// The member added_tokens of a tokenizer.json. Beside a tokenizer_config.json by config_of(), the texts of
/// these tokens are text like any other, as they were in training, unless `frame` is that of an encoder: then
/// they become the tokens, because people write masks, and transformers finds all special tokens or none.
nlohmann::ordered_json added_tokens_of(const std::vector<ExportedToken>& tokens, const TextFrame& frame,
                                       BlanksBeforeMask blanks);
/// Whether an encoder, for whose texts people write masks, reads texts in this frame: the frame has the
/// classifying or the separating token.
bool is_frame_of_encoder(const TextFrame& frame, const std::vector<ExportedToken>& tokens);
/// The names of the inputs that a model takes for texts in this frame. `token_type_ids` is one of them if the
/// second text has a segment of its own.
nlohmann::ordered_json model_input_names_of(const TextFrame& frame);
/// tokenizer_config.json: the class, the roles of the tokens.
nlohmann::ordered_json config_of(const std::vector<ExportedToken>& tokens, const TextFrame& frame);

struct ExportedVocabulary {
  /// The special tokens, ids 0, 1, …
  std::vector<ExportedToken> special;
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
