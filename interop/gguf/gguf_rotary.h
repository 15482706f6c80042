#pragma once
// Rotary positions in the keys and tensors of a GGUF file, and in config.json.

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "interop/gguf/gguf_architectures.h"

namespace zoo {

/// Tensors of a file that hold no weights but numbers by which frequencies are divided:
///   rope_freqs                             Llama 3.1's (https://arxiv.org/abs/2407.21783)
///   rope_factors_short, rope_factors_long  LongRoPE's for short and long texts (Ding et al. 2024)
bool is_rotary_tensor(std::string_view stored);
/// Those for a config.json, as float32.
std::map<std::string, torch::Tensor> rotary_tensors(const GgufArchitecture& architecture,
                                                    const nlohmann::json& config);

/// Reads the keys of positions of an architecture that turns them. Throws CheckpointError.
void read_gguf_rotary(const GgufArchitecture& architecture, const GgufKeys& keys,
                      const GgufTensorFacts& facts, nlohmann::json& config);
void write_gguf_rotary(const GgufArchitecture& architecture, const nlohmann::json& config,
                       const GgufKeyWriter& to);

}  // namespace zoo
