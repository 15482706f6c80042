#include "models/mixers/mixers.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

// The library's mixers. Each is a function in a file of its own in this folder.
MixerType full_mixer();
MixerType window_mixer();
MixerType strided_mixer();
MixerType fixed_mixer();
MixerType blocks_mixer();
MixerType linear_mixer();
MixerType performer_mixer();
MixerType delta_mixer();
MixerType convolution_mixer();
MixerType linformer_mixer();
MixerType mlp_mixer();
MixerType latent_mixer();
MixerType disentangled_mixer();

Registry<MixerType>& mixer_types() {
  static Registry<MixerType> types(
      "type of attention", {full_mixer(), window_mixer(), strided_mixer(), fixed_mixer(), blocks_mixer(),
                            linear_mixer(), performer_mixer(), delta_mixer(), convolution_mixer(),
                            linformer_mixer(), mlp_mixer(), latent_mixer(), disentangled_mixer()});
  return types;
}

std::shared_ptr<MixerImpl> make_mixer(const MixerType& type, const MixerPlace& place) {
  auto mixer = type.make(place);
  if (!type.is_added) return mixer;
  const auto require = [&](bool is_there, std::string_view what) {
    if (!is_there) throw UsageError(fmt::format("the type of attention '{}': {}", type.name, what));
  };
  require(mixer != nullptr, "make() has returned nothing");
  if (place.is_causal())
    require(mixer->new_state(1) != nullptr,
            "new_state() has returned nothing; a mixer without a state has no "
            "new_state() of its own");
  return mixer;
}

AttentionOptions cross_attention_options(const ModelConfig& config) {
  auto options = AttentionOptions(config.d_model, config.n_heads)
                     .n_kv_heads(config.n_kv_heads)
                     .head_dim(config.head_dim)
                     .projection(config.projection)
                     .qkv_bias(config.qkv_bias.value_or(config.bias))
                     .key_bias(config.has_key_bias())
                     .out_bias(config.out_bias.value_or(config.bias))
                     .dropout(config.attention_dropout)
                     .scale(config.attention_scale)
                     .softcap(config.attention_softcap)
                     .qkv_clip(config.qkv_clip);
  if (config.qk_norm)
    options.qk_norm(norm_options(config, config.head_width())).qk_norm_width(config.qk_norm_width);
  return options;
}

AttentionOptions self_attention_options(const MixerPlace& place) {
  const auto& config = place.model;
  auto options = cross_attention_options(config).sinks(config.attention_sinks).gate(config.attention_gate);
  const double factor = config.position == Position::rotary ? config.rotary.score_factor() : 1;
  if (config.attention_scale_by_layer || factor != 1) {
    const double usual = 1 / std::sqrt(static_cast<double>(config.head_width()));
    const double divisor = config.attention_scale_by_layer ? static_cast<double>(place.layer + 1) : 1;
    options.scale(config.attention_scale.value_or(usual) * factor / divisor);
  }
  return options;
}

}  // namespace zoo
