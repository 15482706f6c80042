#pragma once
// The tokenizer in the keys of a GGUF file as a tokenizer.json and a tokenizer_config.json.

#include <cstdint>
#include <map>
#include <string>

#include "io/formats/gguf_keys.h"

namespace zoo {

/// Throws CheckpointError: no tokenizer, damaged, or of a kind or with a pattern (tokenizer.ggml.pre) that is
/// not known.
std::map<std::string, std::string> tokenizer_files(const GgufKeys& keys);

/// The id of a token by its name in the keys: bos, eos, eot, eom, unknown, padding; -1: there is none. Throws
/// CheckpointError.
int64_t gguf_token_id(const GgufKeys& keys, const std::string& name);

}  // namespace zoo
