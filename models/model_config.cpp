#include "models/model_config.h"

#include <cmath>

#include <fmt/format.h>

namespace zoo {
namespace {

// Beyond what any model has, and far enough from where products of such numbers overflow.
constexpr double kWidest = 1 << 20, kMostLayers = 1 << 16, kLargestTable = 1 << 30;

}  // namespace

void describe(ConfigVisitor& v, RotaryConfig& c) {
  v.field("theta", c.theta, "Base of the angles' geometric sequence.", Limits::positive());
  v.field("layout", c.layout, "Which elements form a pair: interleaved (2i, 2i+1) or half (i, i + width/2).");
  v.field("fraction", c.fraction, "Part of each head that is turned.",
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
          "yarn: factor on cosine and sine; default 0.1 ln(factor) + 1.", Limits::positive());
  v.field("low_frequency_factor", c.low_frequency_factor, "llama3: end of the divided wavelengths.",
          Limits::positive());
  v.field("high_frequency_factor", c.high_frequency_factor, "llama3: begin of the kept wavelengths.",
          Limits::positive());
}

void describe(ConfigVisitor& v, ModelConfig& c) {
  v.field("architecture", c.architecture, "The family.");
  v.field("vocab_size", c.vocab_size, "Rows of the token embedding; default the tokenizer's.",
          Limits::between(1, kLargestTable));
  v.field("d_model", c.d_model, "Width of the hidden states (D).", Limits::between(1, kWidest));
  v.field("n_layers", c.n_layers, "Layers; of the encoder in an encoder_decoder.",
          Limits::between(1, kMostLayers));
  v.field("n_decoder_layers", c.n_decoder_layers, "encoder_decoder: layers of the decoder; default n_layers.",
          Limits::between(1, kMostLayers));
  v.field("n_heads", c.n_heads, "Query heads (H).", Limits::between(1, kWidest));
  v.field("n_kv_heads", c.n_kv_heads,
          "Key/value heads (K), a divisor of n_heads; default n_heads; 1 = multi-query.",
          Limits::between(1, kWidest));
  v.field("head_dim", c.head_dim, "Width of a head (Dh); default d_model / n_heads.",
          Limits::between(1, kWidest));
  v.field("d_ff", c.d_ff, "Inner width of the feed-forward (F); default 4 d_model.",
          Limits::between(1, kWidest));
  v.field("activation", c.activation, "Of the feed-forward; the ...glu are gated.");
  v.field("gate", c.gate, "Gate and up projections as two matrices or stacked in one.");
  v.field("norm", c.norm, "Kind of normalisation.");
  v.field("norm_eps", c.norm_eps, "Its epsilon.", Limits::at_least(0));
  v.field("norm_unit_offset", c.norm_unit_offset, "The gain is 1 + weight.");
  v.field("norm_placement", c.norm_placement, "Where norms stand around the residual connections.");
  v.field("position", c.position, "How the order of tokens is known.");
  v.field("max_positions", c.max_positions, "Longest sequence; rows of the table if position is learned.",
          Limits::between(1, kLargestTable));
  v.field("rotary", c.rotary, "Rotary positions.");
  v.field("relative_buckets", c.relative_buckets, "t5: buckets of relative positions.",
          Limits::between(2, kWidest));
  v.field("relative_max_distance", c.relative_max_distance, "t5, shaw: distances beyond this are all alike.",
          Limits::between(1, kLargestTable));
  v.field("attention", c.attention, "Which keys a query may see.");
  v.field("projection", c.projection, "Query, key and value matrices apart or stacked in one.");
  v.field("bias", c.bias, "Biases in linear maps and layer norms.");
  v.field("qkv_bias", c.qkv_bias, "Biases of the query, key and value maps; default bias.");
  v.field("qk_norm", c.qk_norm, "Normalise each head's queries and keys.");
  v.field("attention_scale", c.attention_scale, "Factor on the attention scores; default 1/sqrt(head_dim).",
          Limits::positive());
  v.field("dropout", c.dropout, "Of embeddings and sub-layer outputs.", {.min = 0, .max = 0.99});
  v.field("attention_dropout", c.attention_dropout, "Of attention weights.", {.min = 0, .max = 0.99});
  v.field("activation_dropout", c.activation_dropout, "Inside the feed-forward.", {.min = 0, .max = 0.99});
  v.field("tie_embeddings", c.tie_embeddings, "The output projection is the token embedding.");
  v.field("share_embeddings", c.share_embeddings, "encoder_decoder: one token embedding for both sides.");
  v.field("scale_embeddings", c.scale_embeddings, "Token vectors times sqrt(d_model).");
  v.field("embedding_norm", c.embedding_norm, "A norm on the embeddings.");
  v.field("n_segments", c.n_segments,
          "encoder: segment (sentence A/B) embeddings; 0 = none. A text of ours is all segment A.",
          Limits::at_least(0));
  v.field("output_bias", c.output_bias, "A bias in the output projection.");
  v.field("output_scale", c.output_scale, "Factor on the hidden states before the output projection.",
          Limits::positive());
  v.field("mlm_transform", c.mlm_transform,
          "Masked language modelling: dense, activation and norm before the output.");
  v.field("pooler", c.pooler, "Classification by an encoder: dense and tanh on the class token.");
  v.field("init", c.init, "How weights start.");
  v.field("init_std", c.init_std, "normal: standard deviation.", Limits::positive());
  v.field("init_residual_scaling", c.init_residual_scaling,
          "normal: sub-layer outputs start 1/sqrt(2 n_layers) smaller.");
}

void validate(const ModelConfig& c, const Complain& complain) {
  if (!c.head_dim && c.d_model % c.n_heads != 0) {
    complain("n_heads", fmt::format("d_model {} is not a multiple of n_heads {}", c.d_model, c.n_heads));
  }
  if (c.n_heads % c.kv_heads() != 0) {
    complain("n_kv_heads",
             fmt::format("n_heads {} is not a multiple of n_kv_heads {}", c.n_heads, c.kv_heads()));
  }
  if (c.position == Position::rotary) {
    const double width = static_cast<double>(c.head_width()) * c.rotary.fraction;
    constexpr double rounding = 1e-6;
    if (std::abs(width - static_cast<double>(c.rotary_width())) > rounding || c.rotary_width() % 2 != 0) {
      complain("position", fmt::format("rotary positions turn pairs, but {} of a head of {} is {}: not even",
                                       c.rotary.fraction, c.head_width(), width));
    }
    if (c.rotary.scaling == RotaryScaling::ntk && c.rotary_width() <= 2)
      complain("rotary.scaling", "ntk needs wider heads");
    if (c.rotary.scaling == RotaryScaling::none && c.rotary.factor != 1)
      complain("rotary.factor", "has no effect without rotary.scaling: say which");
    if (c.rotary.scaling != RotaryScaling::none && c.rotary.factor == 1)
      complain("rotary.scaling", "has no effect with a rotary.factor of 1: say how many times longer");
    if (c.rotary.high_frequency_factor <= c.rotary.low_frequency_factor) {
      complain("rotary.high_frequency_factor", "must be greater than low_frequency_factor");
    }
  }
  if (c.position == Position::t5 && c.relative_buckets < 4 && c.architecture != Architecture::decoder)
    complain("relative_buckets", "must be at least 4 where keys ahead have half of them");
  if (c.position == Position::t5 && c.relative_max_distance <= c.relative_buckets / 2) {
    complain("relative_max_distance", "must be greater than relative_buckets / 2");
  }
  if (c.n_decoder_layers && c.architecture != Architecture::encoder_decoder) {
    complain("n_decoder_layers",
             fmt::format("an architecture {} has n_layers alone", name_of(c.architecture)));
  }
  if (c.n_segments > 0 && c.architecture != Architecture::encoder)
    complain("n_segments",
             fmt::format("is for an encoder: an architecture {} knows no segments", name_of(c.architecture)));
  if (c.norm == NormKind::layer_norm_annotated && (c.d_model == 1 || (c.qk_norm && c.head_width() == 1)))
    complain("norm", "layer_norm_annotated needs a width of at least 2: one number has no deviation");
  if (!c.share_embeddings && c.architecture != Architecture::encoder_decoder) {
    complain("share_embeddings", "only an encoder_decoder has two sides");
  }
}

}  // namespace zoo
