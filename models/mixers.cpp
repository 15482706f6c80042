#include "models/mixers.h"

#include <utility>

#include <fmt/format.h>

#include "models/embedder.h"
#include "models/pattern_mixers.h"
#include "models/running_mixers.h"

namespace zoo {
namespace {

MixerType full_attention() {
  MixerType type;
  type.name = "full";
  type.doc = "Multi-head attention over all visible keys.";
  type.make = [](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    return Attention(self_attention_options(place.model)).ptr();
  };
  type.count = [](CostAccount& account, std::string name, const MixerPlace& place,
                  const AttentionShape& shape) {
    count_attention(account, std::move(name), "self-attention", self_attention_options(place.model), shape);
  };
  return type;
}

}  // namespace

Registry<MixerType>& mixer_types() {
  static Registry<MixerType> types(
      "type of attention",
      {full_attention(), window_attention(), strided_attention(), fixed_attention(), blocks_attention(),
       linear_mixer(), performer_mixer(), delta_mixer(), linformer_mixer(), mlp_mixer()});
  return types;
}

AttentionOptions cross_attention_options(const ModelConfig& config) {
  auto options = AttentionOptions(config.d_model, config.n_heads)
                     .n_kv_heads(config.n_kv_heads)
                     .head_dim(config.head_dim)
                     .projection(config.projection)
                     .qkv_bias(config.qkv_bias.value_or(config.bias))
                     .out_bias(config.bias)
                     .dropout(config.attention_dropout)
                     .scale(config.attention_scale);
  if (config.qk_norm) options.qk_norm(norm_options(config, config.head_width()));
  return options;
}

AttentionOptions self_attention_options(const ModelConfig& config) {
  auto options = cross_attention_options(config);
  if (config.position == Position::shaw) options.shaw_max_distance(config.relative_max_distance);
  return options;
}

}  // namespace zoo
