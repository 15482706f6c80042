#pragma once
// The keys of a GGUF file that describe the model, as a config.json, and back.

#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

#include "interop/gguf/gguf_architectures.h"

namespace zoo {

/// The config.json of a file. Throws CheckpointError: a key is missing, damaged or not known, or says what no
/// family of transformers computes.
nlohmann::json config_of_gguf(const GgufArchitecture& architecture, const GgufKeys& keys,
                              const GgufTensorFacts& facts);

/// The keys for a config.json of the architecture's family; without those of the tokenizer. Settings for
/// which llama.cpp has no key are left out: whoever writes a file reads its keys again and compares. Throws
/// ConfigError for what llama.cpp does not run.
GgufMetadata gguf_keys_of(const GgufArchitecture& architecture, const nlohmann::json& config);

/// The poolings that llama.cpp has, by their numbers in a file; 0 is none.
inline constexpr std::array<std::string_view, 4> kGgufPoolings = {"", "mean", "cls", "last"};

}  // namespace zoo
