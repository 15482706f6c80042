#pragma once
// Real models and a tokenizer, small and untrained, but with weights large enough that what they say depends
// on what they read.

#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "data/tokenizer.h"
#include "models/model.h"

namespace zoo::testing {

inline std::shared_ptr<const Tokenizer> letters(SpecialTokenSet special = SpecialTokenSet::all) {
  TokenizerConfig config;
  config.type = TokenizerKind::character;
  return make_tokenizer(config, special, [](const auto& sink) { sink("abcdefghijklmnop\n"); });
}

inline ModelConfig tiny_config(Architecture architecture, Position position) {
  ModelConfig config;
  config.architecture = architecture;
  config.position = position;
  config.d_model = 16;
  config.n_layers = 2;
  config.n_heads = 4;
  config.max_positions = 24;
  config.relative_buckets = 8;
  config.relative_max_distance = 12;
  config.init_std = 0.6;
  config.init_residual_scaling = false;
  config.tie_embeddings = false;
  config.dropout = 0.5;  // must not show
  config.attention_dropout = 0.5;
  return config;
}

inline std::shared_ptr<Model> tiny_model(const ModelConfig& config, const Tokenizer& tokenizer,
                                         Head head = Head::language_modeling) {
  torch::manual_seed(3);
  return make_model(config, {.head = head,
                             .vocab_size = tokenizer.vocab_size(),
                             .n_classes = head == Head::classification ? 3 : 0,
                             .start_token = tokenizer.special().bos});
}

struct Variant {
  std::string name;
  ModelConfig config;
};

inline std::vector<Variant> variants(Architecture architecture) {
  std::vector<Variant> list;
  for (const auto position : {Position::learned, Position::sinusoidal, Position::rotary, Position::alibi,
                              Position::t5, Position::shaw, Position::none}) {
    list.push_back({std::string(name_of(position)), tiny_config(architecture, position)});
  }
  auto grouped = tiny_config(architecture, Position::rotary);
  grouped.n_kv_heads = 2;
  grouped.norm = NormKind::rms_norm;
  grouped.activation = Activation::swiglu;
  grouped.projection = Projection::fused;
  list.push_back({"grouped", grouped});
  auto post = tiny_config(architecture, Position::learned);
  post.norm_placement = NormPlacement::post;
  post.n_kv_heads = 1;
  list.push_back({"post", post});
  return list;
}

}  // namespace zoo::testing
