#pragma once
// BERT's WordPiece in a GGUF file, where tokenizer.ggml.model is "bert". A token that begins a word has the
// mark ▁ there, and one that continues a word has no "##".

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "io/formats/gguf_keys.h"
#include "io/formats/gguf_writer.h"

namespace zoo {

/// A token of tokenizer.json as the file has it. Special tokens are the same on both sides.
std::string stored_word_piece(const std::string& token);
/// The reverse; `kind`: in tokenizer.ggml.token_type.
std::string word_piece_of(const std::string& stored, int64_t kind);

/// The parts of a tokenizer.json: normalizer, pre_tokenizer, decoder, model. `vocab`: ids by token; `unk`:
/// the token for unknown words.
nlohmann::json word_piece_parts(const GgufKeys& keys, nlohmann::json vocab, const std::string& unk);

/// Adds the keys of a tokenizer.json with the model WordPiece, except for the tokens. Throws ConfigError for
/// what llama.cpp does not do.
void write_word_pieces(const nlohmann::json& document, GgufMetadata& to);

}  // namespace zoo
