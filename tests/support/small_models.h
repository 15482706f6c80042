#pragma once
// Small models with weights large enough that every part of a model affects its output.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "models/families/families.h"
#include "models/mixers/blocks.h"
#include "models/mixers/fixed.h"
#include "models/mixers/strided.h"
#include "models/mixers/window.h"
#include "models/model.h"

namespace zoo::testing {

constexpr int64_t kVocabulary = 31, kWidth = 24, kStartToken = 1;

inline constexpr std::array kPositions{Position::none,   Position::sinusoidal, Position::learned,
                                       Position::rotary, Position::alibi,      Position::t5,
                                       Position::shaw};
inline constexpr std::array kPlacements{NormPlacement::pre, NormPlacement::post, NormPlacement::residual_post,
                                        NormPlacement::sandwich, NormPlacement::parallel};
inline constexpr std::array kArchitectures{Architecture::encoder, Architecture::decoder,
                                           Architecture::encoder_decoder};
inline constexpr std::array kGenerativeArchitectures{Architecture::decoder, Architecture::encoder_decoder};

inline ModelConfig small_config(Architecture architecture, Position position = Position::learned) {
  ModelConfig config;
  config.architecture = architecture;
  config.position = position;
  config.d_model = kWidth;
  config.n_layers = 2;
  config.n_heads = 4;
  config.d_ff = 40;
  config.max_positions = 32;
  config.relative_buckets = 8;
  config.relative_max_distance = 6;
  config.dropout = 0;
  return config;
}

/// The shape of GPT-2, with its inner width of four times the model's.
inline ModelConfig small_gpt2() {
  auto config = small_config(Architecture::decoder);
  config.d_ff = 4 * kWidth;
  config.activation = Activation::gelu_tanh;
  return config;
}

inline ModelConfig small_bart() {
  auto config = small_config(Architecture::encoder_decoder);
  config.norm_placement = NormPlacement::post;
  config.embedding_norm = true;
  return config;
}

inline ModelPurpose purpose_of(const FamilySelection& architecture) {
  ModelPurpose purpose{.vocab_size = kVocabulary, .start_token = kStartToken};
  if (architecture == Architecture::encoder) purpose.head = HeadKind::masked_language_modeling;
  return purpose;
}

/// In evaluation mode, with random values in every parameter.
inline std::shared_ptr<Model> random_model(const ModelConfig& config, const ModelPurpose& purpose,
                                           uint64_t seed = 1) {
  torch::manual_seed(seed);
  auto model = initialized_model(config, purpose);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.normal_(parameter.dim() == 1 ? 0.5 : 0.0, 0.3);
  model->eval();
  return model;
}

inline std::shared_ptr<Model> random_model(const ModelConfig& config) {
  return random_model(config, purpose_of(config.architecture));
}

inline torch::Tensor tokens(int64_t batch, int64_t length) {
  return torch::randint(kVocabulary, {batch, length});
}

/// A batch to train on, all positions predicted.
inline Batch small_batch(const FamilySelection& architecture, const TokenBatch& input,
                         int64_t target_length = 5) {
  Batch batch;
  batch.input = input;
  if (architecture == Architecture::encoder_decoder) {
    batch.decoder.ids = tokens(input.batch_size(), target_length);
    batch.targets = tokens(1, input.batch_size() * target_length).flatten();
  } else {
    batch.targets = tokens(1, input.batch_size() * input.length()).flatten();
  }
  return batch;
}

inline std::string described(const ModelConfig& config) {
  return config.architecture.type + ", " + config.position.type + ", " +
         std::string(name_of(config.norm_placement)) + ", " + to_text(config.attention.front());
}

inline bool close(const torch::Tensor& a, const torch::Tensor& b, double tolerance = 1e-4) {
  return a.sizes() == b.sizes() && a.isfinite().all().item<bool>() &&
         torch::allclose(a, b, tolerance, tolerance);
}

/// Different configurations of one architecture: all kinds of positions, and other variants.
inline std::vector<ModelConfig> varied_configs(Architecture architecture) {
  std::vector<ModelConfig> configs;
  for (const auto position : kPositions) configs.push_back(small_config(architecture, position));
  for (const auto placement : kPlacements) {
    configs.push_back(small_config(architecture, Position::sinusoidal));
    configs.back().norm_placement = placement;
  }
  auto llama = small_config(architecture, Position::rotary);
  llama.norm = NormKind::rms_norm;
  llama.activation = Activation::swiglu;
  llama.bias = false;
  llama.n_kv_heads = 2;
  llama.tie_embeddings = false;
  configs.push_back(llama);
  llama.qk_norm = true;
  llama.head_dim = 10;
  llama.projection = Projection::fused;
  llama.gate = GateProjection::fused;
  llama.rotary.layout = RotaryLayout::interleaved;
  llama.rotary.fraction = 0.4;
  configs.push_back(llama);
  auto bert = small_config(architecture, Position::learned);
  bert.norm_placement = NormPlacement::post;
  bert.embedding_norm = true;
  bert.n_segments = architecture == Architecture::encoder ? 2 : 0;
  bert.output_bias = true;
  configs.push_back(bert);
  auto multi_query = small_config(architecture, Position::shaw);
  multi_query.n_kv_heads = 1;
  multi_query.scale_embeddings = true;
  configs.push_back(multi_query);
  const Selection window("window", WindowConfig{.size = 3}), full("full");
  // With learned positions, because a window cannot tell one place from another by rotary ones.
  const auto add = [&](std::vector<Selection> attention, Position position = Position::learned) {
    configs.push_back(small_config(architecture, position));
    configs.back().n_kv_heads = 2;
    configs.back().attention = std::move(attention);
  };
  add({window});
  add({Selection("window",
                 WindowConfig{.size = 2, .dilation = 2, .global = GlobalTokens::first, .n_global = 2}),
       full},
      Position::rotary);
  auto gemma = small_config(architecture, Position::rotary);
  gemma.attention = {window, full};
  gemma.attention_softcap = 1.5;
  gemma.logits_softcap = 3;
  gemma.rotary.theta = 5e5;
  gemma.rotary.local_theta = 1e4;
  gemma.rotary.scaling = RotaryScaling::linear;
  gemma.rotary.factor = 2;
  configs.push_back(gemma);
  auto roberta = small_config(architecture);
  roberta.position_offset = 2;
  configs.push_back(roberta);
  add({Selection("strided", StridedConfig{.stride = 3})});
  add({Selection("fixed", FixedConfig{.stride = 4, .n_summary = 1}), window});
  add({Selection("blocks", BlocksConfig{.size = 2, .n_random = 1})});
  return configs;
}

/// Whether the state of a layer forgets tokens, so that it cannot be cut back to any length.
inline bool forgets_tokens(const ModelConfig& config) {
  return std::ranges::any_of(config.attention, [](const Selection& mixer) { return mixer == "window"; });
}

/// Calls `check` with every configuration of these architectures and a random model of it. No gradients.
template <class Architectures, class Check>
void for_each_model(const Architectures& architectures, Check check) {
  const torch::NoGradGuard no_grad;
  for (const Architecture architecture : architectures) {
    for (const auto& config : varied_configs(architecture)) {
      SCOPED_TRACE(described(config));
      check(config, *random_model(config));
    }
  }
}

}  // namespace zoo::testing
