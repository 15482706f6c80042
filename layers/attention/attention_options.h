#pragma once
// The options of an attention, and of a mixer with the same projections in its place.

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <torch/types.h>

#include "layers/attention/attention_pattern.h"
#include "layers/weights/norm.h"

namespace zoo {

/// Query, key and value as three matrices, or stacked in this order in one.
enum class Projection { separate, fused };
constexpr auto config_names(Projection) { return std::to_array<std::string_view>({"separate", "fused"}); }

/// What a norm of queries or keys is over.
///   head       the Dh numbers of a head (Qwen3)
///   all_heads  those of all heads together (OLMo 2)
///   each_head  the Dh numbers of a head, and each head has gains of its own (Command R+)
enum class QkNormWidth { head, all_heads, each_head };
constexpr auto config_names(QkNormWidth) {
  return std::to_array<std::string_view>({"head", "all_heads", "each_head"});
}

struct AttentionOptions {
  AttentionOptions(int64_t d_model, int64_t n_heads) : d_model_(d_model), n_heads_(n_heads) {}
  TORCH_ARG(int64_t, d_model);
  /// Query heads H.
  TORCH_ARG(int64_t, n_heads);
  /// Key/value heads K, a divisor of H; default H. 1 = multi-query.
  TORCH_ARG(std::optional<int64_t>, n_kv_heads) = std::nullopt;
  /// Dh; default D/H, which requires that H divides D.
  TORCH_ARG(std::optional<int64_t>, head_dim) = std::nullopt;
  TORCH_ARG(Projection, projection) = Projection::separate;
  /// Biases of the maps to queries, keys and values.
  TORCH_ARG(bool, qkv_bias) = true;
  /// Bias of the map to keys, if the maps are separate; default: qkv_bias. A bias of keys changes no softmax:
  /// it adds the same to all scores of a query.
  TORCH_ARG(std::optional<bool>, key_bias) = std::nullopt;

 public:
  bool has_key_bias() const { return key_bias_.value_or(qkv_bias_); }
  TORCH_ARG(bool, out_bias) = true;
  /// Probability of dropping an attention weight.
  TORCH_ARG(double, dropout) = 0.0;
  /// Factor on the scores; default 1/√Dh. T5 uses 1.
  TORCH_ARG(std::optional<double>, scale) = std::nullopt;
  /// c: the scores become c·tanh(scores/c) before the mask (Gemma 2); default: they stay. Uses attention step
  /// by step instead of the fused kernel.
  TORCH_ARG(std::optional<double>, softcap) = std::nullopt;
  /// Normalises queries and keys before positions are applied, as far as qk_norm_width says; its size is set
  /// here.
  TORCH_ARG(std::optional<NormOptions>, qk_norm) = std::nullopt;
  TORCH_ARG(QkNormWidth, qk_norm_width) = QkNormWidth::head;
  /// c: queries, keys and values, behind their norms, are kept within [-c, c] (MPT, OLMo); default: they
  /// stay.
  TORCH_ARG(std::optional<double>, qkv_clip) = std::nullopt;
  /// Each head has a learned score s that takes part in the softmax and has no value: a query's weights sum
  /// to less than 1 (gpt-oss, OpenAI 2025). Uses attention step by step.
  TORCH_ARG(bool, sinks) = false;
  /// What the heads return is multiplied by sigmoid(W_gate x), a number for each of the H·Dh (Qwen3-Next; Qiu
  /// et al. 2025).
  TORCH_ARG(bool, gate) = false;
  /// The keys that queries see in self-attention, as far as the mask allows; null: all keys. Such an
  /// attention takes no bias, and no mask but causality and lengths.
  TORCH_ARG(std::shared_ptr<const AttentionPattern>, pattern) = nullptr;
};

}  // namespace zoo
