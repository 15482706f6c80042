#pragma once
// A tokenizer of the Hub as keys of a GGUF file: the reverse of gguf_tokenizer.h.

#include <cstdint>

#include "io/formats/gguf_writer.h"
#include "tokenizers/hub_tokenizer.h"

namespace zoo {

/// What a file needs to know of a tokenizer.
struct GgufVocabulary {
  HubFiles files;
  SpecialTokens special;
  TextFrame frame;
  int64_t n_tokens = 0;  // that the tokenizer has
  int64_t n_rows = 0;    // of the embeddings; there may be more than tokens
};

/// The keys "tokenizer.*", chat templates among them. Throws ConfigError for what llama.cpp does not do:
/// another kind of tokenizer, a pattern that has no name there, other tokens around texts, more than three
/// end tokens.
GgufMetadata gguf_keys_of(const GgufVocabulary& vocabulary);

}  // namespace zoo
