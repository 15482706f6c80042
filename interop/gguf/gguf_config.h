#pragma once
// The keys of a GGUF file that describe the model, as a config.json, and back.

#include <array>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "interop/gguf/gguf_architectures.h"

namespace zoo {

/// What the tensors of a file say about its config.json.
struct GgufTensorFacts {
  bool is_tied = false;           // embeddings and output are one matrix
  bool is_gated = false;          // T5: there are tensors ffn_gate
  torch::Tensor rotary_divisors;  // rope_freqs.weight, (Dh/2); undefined if there is none
};

/// The config.json of a file. Throws CheckpointError: a key is missing or damaged, or says what no family of
/// transformers computes.
nlohmann::json config_of_gguf(const GgufArchitecture& architecture, const GgufKeys& keys,
                              const GgufTensorFacts& facts);

/// The keys for a config.json of the architecture's family; without those of the tokenizer. Settings for
/// which llama.cpp has no key are left out: whoever writes a file reads its keys again and compares. Throws
/// ConfigError for what llama.cpp does not run.
GgufMetadata gguf_keys_of(const GgufArchitecture& architecture, const nlohmann::json& config);

/// The numbers by which llama.cpp divides the frequencies of rotary positions, as float32: rope_scaling of
/// the type llama3 (https://arxiv.org/abs/2407.21783). Nothing for another scaling.
std::optional<torch::Tensor> rotary_divisors(const nlohmann::json& config);

/// The poolings that llama.cpp has, by their numbers in a file; 0 is none.
inline constexpr std::array<std::string_view, 4> kGgufPoolings = {"", "mean", "cls", "last"};

}  // namespace zoo
