#pragma once
// A Unigram of SentencePiece in a GGUF file, where tokenizer.ggml.model is "t5".

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/formats/gguf_keys.h"
#include "io/formats/gguf_writer.h"

namespace zoo {

/// What happens to a text before tokens are looked for.
struct UnigramText {
  std::string charsmap;  // SentencePiece's rules of characters; may be empty
  bool adds_blank = true, merges_blanks = true;
};

/// Whether a token has a blank in it that is not its first character: then texts are not cut at blanks.
enum class WithinTokens { no_blanks, blanks };

/// The parts of a tokenizer.json that do this: normalizer, pre_tokenizer, decoder.
nlohmann::json unigram_text_parts(const UnigramText& text, WithinTokens within);

/// The parts of a tokenizer.json: normalizer, pre_tokenizer, decoder, model. `unk`: the id for what has no
/// token. Throws CheckpointError for damaged scores or rules of characters.
nlohmann::json unigram_parts(const GgufKeys& keys, const std::vector<std::string>& tokens, int64_t unk);

/// Adds the keys of a tokenizer.json with the model Unigram, except for the tokens; `n_rows`: of the
/// embeddings. Throws ConfigError for what llama.cpp does not do.
void write_unigram(const nlohmann::json& document, int64_t n_rows, GgufMetadata& to);

}  // namespace zoo
