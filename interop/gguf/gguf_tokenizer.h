#pragma once
// The tokenizer in the keys of a GGUF file as a tokenizer.json and a tokenizer_config.json.

#include <map>
#include <string>

#include "interop/gguf/gguf_keys.h"

namespace zoo {

/// Throws CheckpointError: no tokenizer, damaged, or of a kind or with a pattern (tokenizer.ggml.pre) that is not
/// known.
std::map<std::string, std::string> tokenizer_files(const GgufKeys& keys);

}  // namespace zoo
