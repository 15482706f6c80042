#pragma once
// What Llama and its relatives share: Mistral, Qwen, Gemma. Their feed-forward networks and some of their
// norms differ.

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "interop/families/foreign_family.h"

namespace zoo {

/// The values of keys that a config.json may lack.
struct LlamaDefaults {
  int64_t vocab_size = 32000, max_positions = 2048, n_kv_heads = 0;  // 0: as many as there are query heads
  int64_t d_model = 4096, d_ff = 11008, n_layers = 32, n_heads = 32;
  bool tie_embeddings = false;
  double rotary_theta = 10000;
  std::optional<double> rotary_fraction = {};  // as in RotaryDefaults
};

/// Reads all but the activation, the width of heads, windows and biases. Throws CheckpointError.
void read_llama_like(ForeignConfig& from, const LlamaDefaults& defaults, Experiment& to);
/// Writes the same keys.
void write_llama_like(const Experiment& from, nlohmann::json& to);
/// The embeddings, the norm before attention, the last norm, whose name is `final_norm`, and heads.
void add_llama_frame(const Experiment& experiment, TensorRules& rules,
                     const std::string& final_norm = "model.norm");
/// The linear maps of attention. `out`: the name of the last one.
void add_llama_attention(const ModelConfig& model, TensorRules& rules, const std::string& out = "o_proj");
/// The linear maps of a gated feed-forward network.
void add_llama_feed_forward(const ModelConfig& model, TensorRules& rules);
/// All but the norm before the feed-forward network, which has another name in each family.
TensorRules llama_like_rules(const Experiment& experiment);

/// Llama, Mistral, Qwen and their mixtures of experts: the keys and tensors above, a gated activation and the
/// norm before the feed-forward network.
void read_silu_decoder(ForeignConfig& from, const LlamaDefaults& defaults, Experiment& to);
void write_silu_decoder(const Experiment& from, nlohmann::json& to);
TensorRules llama_rules(const Experiment& experiment);

}  // namespace zoo
