#pragma once
// The entries of gguf_architectures(), and what they share.

#include <string>
#include <vector>

#include "interop/gguf/gguf_architectures.h"

namespace zoo {

/// GPT-2, Llama and decoders that change one thing or two of it.
std::vector<GgufArchitecture> gguf_llama_kindred();
/// Decoders with experts.
std::vector<GgufArchitecture> gguf_mixtures();
/// Decoders whose matrices of attention are stacked, or whose sub-layers read the same vectors.
std::vector<GgufArchitecture> gguf_parallel_decoders();
/// Encoders, and T5.
std::vector<GgufArchitecture> gguf_encoders();

/// The sizes of Llama, and the epsilon of its norms.
std::vector<GgufKeyName> llama_keys();
/// The same with an epsilon of LayerNorm, which config.json calls `eps`.
std::vector<GgufKeyName> layer_norm_keys(std::string_view eps);
/// Embeddings, output and attention of Llama, all but the norm before the feed-forward network.
std::vector<GgufModuleName> llama_frame();
/// llama_frame() and the feed-forward network, whose norm transformers calls post_attention_layernorm.
std::vector<GgufModuleName> llama_modules();
/// The same modules, of which queries and keys are stored as llama.cpp turns them for Llama.
std::vector<GgufModuleName> with_interleaved_rows(std::vector<GgufModuleName> modules);
/// With norms of queries and keys.
std::vector<GgufModuleName> with_qk_norms(std::vector<GgufModuleName> modules);
/// An architecture of Llama's keys and modules.
GgufArchitecture llama_like(const std::string& name, const std::string& model_type,
                            const std::string& class_name);

}  // namespace zoo
