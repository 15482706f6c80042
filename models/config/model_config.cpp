#include "models/config/model_config.h"

#include <cmath>

#include <fmt/format.h>

namespace zoo {
void describe(ConfigVisitor& v, RotaryConfig& c) {
  v.field("theta", c.theta, "Base of the angles' geometric sequence.", Limits::positive());
  v.field(
      "local_theta", c.local_theta,
      "Base in the layers whose attention is a window; their angles are not scaled. Default: as the others.",
      Limits::positive());
  v.field("layout", c.layout, "Which elements form a pair: interleaved (2i, 2i+1) or half (i, i + width/2).");
  v.field("fraction", c.fraction, "Part of each head that is rotated.",
          {.min = 0, .max = 1, .min_excluded = true});
  v.field("scaling", c.scaling, "How the angles change for longer contexts.");
  v.field("factor", c.factor, "How many times longer than original_max_positions the context is.",
          Limits::at_least(1));
  v.field("original_max_positions", c.original_max_positions, "Context of the first training (yarn, llama3).",
          Limits::at_least(1));
  v.field("beta_fast", c.beta_fast, "yarn: frequencies with more turns than this are kept.",
          Limits::positive());
  v.field("beta_slow", c.beta_slow, "yarn: frequencies with fewer turns than this are divided.",
          Limits::positive());
  v.field("attention_factor", c.attention_factor,
          "yarn, longrope: factor on cosine and sine; default 0.1 ln(factor) + 1 and 1.", Limits::positive());
  v.field("low_frequency_factor", c.low_frequency_factor,
          "llama3: wavelengths above original_max_positions / this are divided.", Limits::positive());
  v.field("high_frequency_factor", c.high_frequency_factor,
          "llama3: wavelengths below original_max_positions / this are kept.", Limits::positive());
  v.field("divisors", c.divisors, "longrope: numbers by which the angles are divided, one for each pair.",
          Limits::positive());
}

ModelConfig resolved(ModelConfig config) {
  config.n_kv_heads = config.kv_heads();
  config.head_dim = config.head_width();
  config.d_ff = config.feed_forward_width();
  config.n_decoder_layers = config.decoder_layers();
  config.key_bias = config.has_key_bias();
  for (auto* const bias : {&config.qkv_bias, &config.out_bias, &config.ff_bias})
    *bias = bias->value_or(config.bias);
  return config;
}

NormOptions norm_options(const ModelConfig& config, int64_t size) {
  return NormOptions(size)
      .kind(config.norm)
      .eps(config.norm_eps)
      .bias(config.bias)
      .unit_offset(config.norm_unit_offset);
}

}  // namespace zoo
