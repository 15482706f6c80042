#include "models/families/model_keys.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/config/layer_types.h"
#include "models/families/families.h"
#include "models/mixers/mixers.h"

namespace zoo {
namespace {

// Larger than in any model, and small enough that products of such numbers do not overflow.
constexpr double kWidest = 1 << 20, kMostLayers = 1 << 12, kLargestTable = 1 << 30;

/// Reports a list with more entries than layers, and mixers that do not fit at their place.
void validate_mixers(const ModelConfig& c, const ModelFamily& family, const Complain& complain) {
  const auto n_mixers = std::ssize(c.attention);
  const int64_t most = std::max(c.n_layers, family.has_memory ? c.decoder_layers() : 0);
  if (n_mixers > most) {
    complain("attention",
             fmt::format("is a list of {} for {} layer{}: shorten it", n_mixers, most, most == 1 ? "" : "s"));
  }
  const auto check = [&](StackRole role, int64_t n_layers) {
    for (int64_t layer = 0; layer < std::min<int64_t>(n_layers, n_mixers); ++layer) {
      const MixerPlace place{.model = c, .role = role, .layer = layer};
      const auto& type = mixer_types().at(place.selection());
      const auto refuse = [&](bool is_set, std::string_view key) {
        if (is_set && !type.is_attention)
          complain(key, fmt::format("is for softmax attention, and {} is none: leave it out", type.name));
      };
      refuse(c.qkv_clip.has_value(), "qkv_clip");
      refuse(c.attention_sinks, "attention_sinks");
      refuse(c.attention_gate, "attention_gate");
      if (type.validate)
        type.validate(place, [&](std::string_view problem) { complain("attention", problem); });
    }
  };
  const bool only_decodes = family.shape == FamilyShape::decoder;
  check(only_decodes ? StackRole::decoder : StackRole::encoder, c.n_layers);
  if (family.has_memory) check(StackRole::decoder_with_memory, c.decoder_layers());
}

/// Reports keys that need layers or norms of their own, which the model does not have.
void validate_sharing(const ModelConfig& c, const ModelFamily& family, const Complain& complain) {
  const int64_t fewest = family.has_memory ? std::min(c.n_layers, c.decoder_layers()) : c.n_layers;
  if (c.layer_groups && *c.layer_groups > fewest)
    complain("layer_groups",
             fmt::format("{} different layers are more than there are, {}", *c.layer_groups, fewest));
  const bool differ =
      c.attention.size() > 1 || c.attention_scale_by_layer || c.score_bias_by_layer || !c.first_norm ||
      c.stochastic_depth > 0 ||
      (c.experts && (c.experts->first_dense > 0 || c.experts->every > 1 || !c.experts->dense_layers.empty()));
  if (c.layer_groups && differ)
    complain("layer_groups",
             "makes layers alike, but attention, experts, attention_scale_by_layer, score_bias_by_layer, "
             "first_norm or stochastic_depth make them differ: leave it out");
  if (!c.first_norm && c.norm_placement != NormPlacement::pre)
    complain("first_norm", "is for norm_placement: pre");
  if (c.embedding_map == EmbeddingMap::first && !c.embedding_width)
    complain("embedding_map", "has no effect without embedding_width");
  if (!c.final_norm && !wants_final_norm(c.norm_placement))
    complain("final_norm", "has no effect on norm_placement: post, where no stack ends with a further norm");
  if (c.pooler_norm && !c.pooler) complain("pooler_norm", "needs a pooler");
}

/// Reports positions that are found in vectors where there are none, or that cannot be divided into groups.
void validate_found_positions(const ModelConfig& c, const ModelFamily& family, const Complain& complain) {
  if (!position_types().at(c.position).make_found) return;
  if (!family.adds_found_positions)
    complain("position", fmt::format("{} is for encoder, speech_encoder and wave_encoder, not {}",
                                     c.position.type, c.architecture.type));
  else if (c.position == Position::convolution &&
           c.sum_width() % c.position.as<ConvolutionPositionConfig>().groups != 0)
    complain("position", fmt::format("has {} groups, which do not divide the width {}",
                                     c.position.as<ConvolutionPositionConfig>().groups, c.sum_width()));
}

/// Reports a second encoding that adds nothing to scores, or is not the only one that does.
void validate_score_position(const ModelConfig& c, const ModelFamily& family, const Complain& complain) {
  const auto& type = score_bias_type(c);
  if (c.score_bias_by_layer && (!type.make_bias || type.name == name_of(Position::alibi)))
    complain("score_bias_by_layer",
             "needs positions with learned numbers that are added to scores: t5 or grid");
  if (type.needs_grid && !family.has_grid)
    complain(position_types().at(c.position).needs_grid ? "position" : "score_position",
             fmt::format("{} is for the patches of pictures: architecture {} has no grid", type.name,
                         c.architecture.type));
  if (c.score_position == Position::none) return;
  if (!position_types().at(c.score_position).make_bias)
    complain("score_position",
             fmt::format("{} adds nothing to scores: only t5, alibi, grid and added types do",
                         c.score_position.type));
  else if (position_types().at(c.position).make_bias)
    complain("score_position",
             fmt::format("position {} adds to scores already: leave one of both out", c.position.type));
}

}  // namespace

void describe(ConfigVisitor& v, ModelConfig& c) {
  const auto of_tokens_or_waves = [&](const auto& keys) {
    v.only_for({"encoder", "decoder", "encoder_decoder", "whisper", "speech_encoder", "wave_encoder",
                "esmfold", "dual_encoder"},
               keys);
  };
  const auto of_tokens = [&](const auto& keys) {
    v.only_for(
        {"encoder", "decoder", "encoder_decoder", "whisper", "speech_encoder", "esmfold", "dual_encoder"},
        keys);
  };
  v.selection("architecture", c.architecture, model_families(), "The family.");
  of_tokens_or_waves([&] {
    v.field("vocab_size", c.vocab_size,
            "Rows of the token embedding, or the classes of CTC where the blank is a token; default the "
            "tokenizer's.",
            Limits::between(1, kLargestTable));
  });
  v.field("d_model", c.d_model, "Width of the hidden states (D).", Limits::between(1, kWidest));
  v.field("n_layers", c.n_layers, "Layers; with an encoder and a decoder, those of the encoder.",
          Limits::between(1, kMostLayers));
  v.only_for({"encoder_decoder", "detr", "whisper"}, [&] {
    v.field("n_decoder_layers", c.n_decoder_layers,
            "encoder_decoder, detr, whisper: layers of the decoder; default n_layers.",
            Limits::between(1, kMostLayers));
  });
  v.field("layer_groups", c.layer_groups,
          "So many different layers: n_layers / layer_groups neighbours have the same weights (ALBERT: 1). "
          "Default: all differ.",
          Limits::between(1, kMostLayers));
  v.field("n_heads", c.n_heads, "Query heads (H).", Limits::between(1, kWidest));
  v.field("n_kv_heads", c.n_kv_heads,
          "Key/value heads (K), a divisor of n_heads; default n_heads; 1 = multi-query.",
          Limits::between(1, kWidest));
  v.field("head_dim", c.head_dim, "Width of a head (Dh); default d_model / n_heads.",
          Limits::between(1, kWidest));
  v.field("d_ff", c.d_ff, "Inner width of the feed-forward (F); default 4 d_model.",
          Limits::between(1, kWidest));
  v.field("experts", c.experts,
          "A mixture of experts in place of each feed-forward network; default: there is none.");
  v.selection("activation", c.activation, activation_types(),
              "Activation of the feed-forward; the ...glu are gated.");
  v.field("gate", c.gate, "Gate and up projections as two matrices or stacked in one.");
  v.selection("norm", c.norm, norm_types(), "Kind of normalisation.");
  v.field("norm_eps", c.norm_eps, "Epsilon of the norms.", Limits::at_least(0));
  v.field("norm_unit_offset", c.norm_unit_offset, "The gain is 1 + weight.");
  v.field("norm_placement", c.norm_placement, "Where the norms are, relative to the residual connections.");
  v.selection("position", c.position, position_types(), "How the model encodes the order of tokens.");
  v.selection("score_position", c.score_position, position_types(),
              "A second encoding beside position, of numbers that are added to scores (MPNet: t5).");
  v.field("score_bias_by_layer", c.score_bias_by_layer,
          "t5, grid: each layer has numbers of its own; false: the layers of a stack share them.");
  v.field("max_positions", c.max_positions, "Longest sequence; rows of the table if position is learned.",
          Limits::between(1, kLargestTable));
  of_tokens([&] {
    v.field("position_offset", c.position_offset,
            "learned, sinusoidal: rows of the table before the one of position 0, which no position uses "
            "(RoBERTa, BART, M2M100: 2).",
            Limits::between(0, kLargestTable));
  });
  v.field("sinusoid_layout", c.sinusoid_layout,
          "sinusoidal: sines and cosines take turns, or all sines come first (Marian), also with rates that "
          "end at 1/10000 (half_closed: M2M100).");
  of_tokens([&] {
    v.field(
        "stored_sinusoids", c.stored_sinusoids,
        "sinusoidal: their table, of max_positions rows, is a part of checkpoints, as in Pegasus. Training "
        "leaves it as it is.");
  });
  v.field("rotary", c.rotary, "Rotary positions.");
  v.field("relative_buckets", c.relative_buckets, "t5: buckets of relative positions.",
          Limits::between(2, kWidest));
  v.field("relative_max_distance", c.relative_max_distance,
          "t5, shaw: all distances beyond this are treated alike.", Limits::between(1, kLargestTable));
  v.selections("attention", c.attention, mixer_types(), "The mixer of positions in each layer.");
  v.field("projection", c.projection, "Query, key and value as three matrices or stacked in one.");
  v.field("bias", c.bias, "Biases in linear maps and layer norms.");
  v.field("qkv_bias", c.qkv_bias, "Biases of the query, key and value maps; default bias.");
  v.field(
      "key_bias", c.key_bias,
      "A bias of the key maps, which changes nothing that is computed (Whisper has none); default qkv_bias.");
  v.field("out_bias", c.out_bias, "Biases of the output maps of attention; default bias.");
  v.field("ff_bias", c.ff_bias, "Biases of the feed-forward; default bias.");
  v.field("qk_norm", c.qk_norm, "Normalise queries and keys.");
  v.field(
      "qk_norm_width", c.qk_norm_width,
      "qk_norm: over the numbers of a head (Qwen3), over those of all heads together (OLMo 2), or over those "
      "of a head with gains for each head (Command R+).");
  v.field("qkv_clip", c.qkv_clip,
          "c: queries, keys and values are kept within -c ... c (OLMo); default: they stay.",
          Limits::positive());
  v.field("attention_sinks", c.attention_sinks,
          "Self-attention: each head has a learned score without a value in its softmax (gpt-oss).");
  v.field("attention_gate", c.attention_gate,
          "Self-attention: what heads return is times a sigmoid of a linear map (Qwen3-Next).");
  v.field("attention_scale", c.attention_scale, "Factor on the attention scores; default 1/sqrt(head_dim).",
          Limits::positive());
  v.field("attention_scale_by_layer", c.attention_scale_by_layer,
          "Self-attention: the scores of layer i = 1, 2, ... are also divided by i.");
  v.field("attention_softcap", c.attention_softcap,
          "c: attention scores become c tanh(scores/c), as in Gemma 2; default: they stay.",
          Limits::positive());
  v.field("dropout", c.dropout, "Dropout on embeddings and sub-layer outputs.", {.min = 0, .max = 0.99});
  v.field("attention_dropout", c.attention_dropout, "Dropout on attention weights.", {.min = 0, .max = 0.99});
  v.field("activation_dropout", c.activation_dropout, "Dropout inside the feed-forward.",
          {.min = 0, .max = 0.99});
  v.field("layer_scale", c.layer_scale,
          "Initial value of learned factors on the sub-layer outputs; default: no factors.",
          Limits::positive());
  v.field("residual_scale", c.residual_scale, "Factor on the sub-layer outputs (Granite: 0.22).",
          Limits::positive());
  v.field("stochastic_depth", c.stochastic_depth,
          "Probability of leaving out a sub-layer of the last layer for a row; earlier layers have less.",
          {.min = 0, .max = 0.99});
  of_tokens([&] {
    v.field("tie_embeddings", c.tie_embeddings,
            "The output projection uses the matrix of the token embedding.");
    v.field("scale_embeddings", c.scale_embeddings, "Token vectors times sqrt(d_model).");
    v.field(
        "embedding_scale", c.embedding_scale,
        "Token vectors times this number (Granite: 12), in place of scale_embeddings; default: they stay.",
        Limits::positive());
  });
  v.only_for({"encoder", "decoder", "encoder_decoder", "whisper", "speech_encoder", "wave_encoder", "esmfold",
              "vit", "dual_encoder"},
             [&] { v.field("embedding_norm", c.embedding_norm, "A norm on the embeddings."); });
  v.only_for({"encoder", "decoder", "encoder_decoder"}, [&] {
    v.field(
        "embedding_width", c.embedding_width,
        "Width of the table of tokens; maps lead to d_model and back (ELECTRA, ALBERT, OPT-350m). Default: "
        "d_model, without maps.",
        Limits::between(1, kWidest));
    v.field(
        "embedding_map", c.embedding_map,
        "last: the sum of the vectors of tokens, positions and segments is mapped (ELECTRA, ALBERT); first: "
        "those of tokens, without a bias (OPT-350m).");
  });
  v.field("first_norm", c.first_norm,
          "pre: the first layer has a norm before its first sub-layer (ModernBERT: it has none).");
  v.field("final_norm", c.final_norm, "A stack ends with a norm, where norm_placement has one.");
  v.only_for({"encoder_decoder"}, [&] {
    v.field("share_embeddings", c.share_embeddings, "encoder_decoder: one token embedding for both sides.");
  });
  v.only_for({"encoder", "esmfold"}, [&] {
    v.field("n_segments", c.n_segments,
            "encoder: segment (sentence A/B) embeddings; 0 = none. All of a text is segment A.",
            Limits::between(0, kWidest));
    v.field(
        "token_dropout", c.token_dropout,
        "encoder: id of the mask token, whose vectors are zeros; the vectors of the other tokens are times "
        "0.88 / (1 - share of masks in the text), as in ESM. Default: masks have vectors like others.",
        Limits::between(0, kLargestTable));
    v.field(
        "contact_regression", c.contact_regression,
        "encoder: a regression from attention maps to contacts of residues, as in ESM; training leaves it "
        "as it is.");
  });
  of_tokens([&] {
    v.field("output_bias", c.output_bias, "A bias in the output projection.");
    v.field("output_scale", c.output_scale, "Factor on the hidden states before the output projection.",
            Limits::positive());
    v.field("logits_softcap", c.logits_softcap,
            "c: scores of tokens become c tanh(scores/c), as in Gemma 2; default: they stay.",
            Limits::positive());
  });
  v.only_for({"encoder"}, [&] {
    v.field("mlm_transform", c.mlm_transform,
            "Masked language modelling: dense, activation and norm before the output.");
  });
  v.field(
      "pooler", c.pooler,
      "Dense and activation on the class token: encoder, and vit without a head. In an encoder_decoder that "
      "classifies: on the last token.");
  v.field("pooler_activation", c.pooler_activation,
          "The activation of the pooler: tanh in BERT, relu in DistilBERT.");
  v.field("pooler_norm", c.pooler_norm, "A norm behind the pooler's activation (ModernBERT).");
  v.field("head_bias", c.head_bias, "A bias in the dense map of a head: mlm_transform, pooler.");
  v.only_for({"encoder"}, [&] {
    v.field("text_vector", c.text_vector,
            "What heads that classify a text read: the vector of its first token, or the mean of all.");
  });
  v.only_for({"speech_encoder", "wave_encoder"}, [&] {
    v.field("ctc_blank", c.ctc_blank,
            "The class of CTC's blank: one more behind those of the vocabulary, or the vocabulary's padding "
            "token, as in wav2vec 2.0.");
  });
  v.field("classifier_bias", c.classifier_bias, "A bias in the last map of a head that classifies.");
  v.field("init", c.init, "Distribution of the initial weights.");
  v.field("init_std", c.init_std, "normal: standard deviation.", Limits::positive());
  v.field("init_residual_scaling", c.init_residual_scaling,
          "normal: scale the standard deviation of sub-layer output matrices by 1/sqrt(2 n_layers).");
}

void describe_inner_encoder(ConfigVisitor& v, ModelConfig& m) {
  v.field("d_model", m.d_model, "Width of the hidden states (D).", Limits::between(1, kWidest));
  v.field("n_layers", m.n_layers, "Layers.", Limits::between(1, kMostLayers));
  v.field("n_heads", m.n_heads, "Query heads (H).", Limits::between(1, kWidest));
  v.field("d_ff", m.d_ff, "Inner width of the feed-forward (F); default 4 d_model.",
          Limits::between(1, kWidest));
  v.selection("activation", m.activation, activation_types(),
              "Activation of the feed-forward; the ...glu are gated.");
  v.selection("norm", m.norm, norm_types(), "Kind of normalisation.");
  v.field("norm_eps", m.norm_eps, "Epsilon of the norms.", Limits::at_least(0));
  v.field("norm_placement", m.norm_placement, "Where the norms are, relative to the residual connections.");
}

void validate(const ModelConfig& c, const Complain& complain) {
  const auto& family = model_families().at(c.architecture);
  const auto shape = family.shape;
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
      complain("position",
               fmt::format("rotary positions rotate pairs, but {} of a head of {} is {}: not even",
                           c.rotary.fraction, c.head_width(), width));
    }
    if (c.rotary.scaling == RotaryScaling::ntk && c.rotary_width() <= 2)
      complain("rotary.scaling", "ntk needs wider heads");
    if (c.rotary.local_theta &&
        std::ranges::none_of(c.attention, [](const auto& a) { return mixer_types().at(a).is_local; }))
      complain("rotary.local_theta", "is for layers whose attention is a window, and there are none");
    if (c.rotary.scaling == RotaryScaling::none && c.rotary.factor != 1)
      complain("rotary.factor", "has no effect without rotary.scaling: set rotary.scaling");
    const bool is_longrope = c.rotary.scaling == RotaryScaling::longrope;
    if (is_longrope && 2 * std::ssize(c.rotary.divisors) != c.rotary_width()) {
      complain("rotary.divisors", fmt::format("longrope needs {} numbers, one for each pair, and has {}",
                                              c.rotary_width() / 2, c.rotary.divisors.size()));
    }
    if (!is_longrope && !c.rotary.divisors.empty())
      complain("rotary.divisors", "are for rotary.scaling: longrope");
    if (is_longrope && c.rotary.factor != 1)
      complain("rotary.factor", "has no effect on longrope: set rotary.divisors");
    if (c.rotary.scaling != RotaryScaling::none && !is_longrope && c.rotary.factor == 1)
      complain("rotary.scaling", "has no effect with a rotary.factor of 1: set a greater rotary.factor");
    const int64_t most = std::max(c.n_layers, family.has_memory ? c.decoder_layers() : 0);
    if (std::ssize(c.rotary.turns) > most)
      complain("rotary.turns",
               fmt::format("is a list of {} for {} layers: shorten it", c.rotary.turns.size(), most));
    if (!c.rotary.turns.empty() && std::ranges::find(c.rotary.turns, 1) == c.rotary.turns.end())
      complain("rotary.turns", "turns no layer: set position to none");
    if (!c.rotary.rounded && c.rotary.scaling != RotaryScaling::yarn)
      complain("rotary.rounded", "is for rotary.scaling: yarn");
    if (c.rotary.mscale_all_dim > 0 && c.rotary.scaling != RotaryScaling::yarn)
      complain("rotary.mscale_all_dim", "is for rotary.scaling: yarn");
    if (c.rotary.high_frequency_factor <= c.rotary.low_frequency_factor) {
      complain("rotary.high_frequency_factor", "must be greater than low_frequency_factor");
    }
  }
  if (c.experts) validate(*c.experts, complain_under("experts", complain));
  if (c.experts && c.experts->chooser == Chooser::experts && shape != FamilyShape::encoder)
    complain("experts.chooser",
             fmt::format("experts is for an encoder: in architecture {} a token would see later ones through "
                         "the choice",
                         c.architecture.type));
  if (c.qk_norm_width != QkNormWidth::head && !c.qk_norm)
    complain("qk_norm_width", "has no effect without qk_norm: set qk_norm to true");
  if (!c.position.kind() && shape == FamilyShape::other && position_types().at(c.position).make_added)
    complain("position", fmt::format("{} is added to the vectors of tokens, and architecture {} reads none",
                                     c.position.type, c.architecture.type));
  if (c.qk_norm_width == QkNormWidth::each_head && c.qk_norm &&
      !(c.norm == NormKind::layer_norm || c.norm == NormKind::rms_norm))
    complain("qk_norm_width", "each_head is for norm layer_norm or rms_norm");
  if (c.scale_embeddings && c.embedding_scale)
    complain("embedding_scale", "is in place of scale_embeddings: set one of them");
  if (c.norm_unit_offset && c.norm == NormKind::layer_norm_plain)
    complain("norm_unit_offset", "has no effect on layer_norm_plain, which has no gain");
  const bool has_rows = c.position == Position::learned || c.position == Position::sinusoidal;
  if (c.position_offset > 0 && (!has_rows || shape == FamilyShape::other))
    complain("position_offset", "is for learned or sinusoidal positions of tokens: leave it out");
  validate_sharing(c, family, complain);
  if (c.sinusoid_layout != SinusoidLayout::interleaved &&
      (c.position != Position::sinusoidal || shape == FamilyShape::other))
    complain("sinusoid_layout", "is for sinusoidal positions of tokens: leave it out");
  if (c.stored_sinusoids && (c.position != Position::sinusoidal || shape == FamilyShape::other))
    complain("stored_sinusoids", "is for sinusoidal positions of tokens: leave it out");
  if (c.sinusoid_layout == SinusoidLayout::half_closed && (c.sum_width() % 2 != 0 || c.sum_width() < 4))
    complain("sinusoid_layout",
             fmt::format("half_closed needs an even width of at least 4, not {}", c.sum_width()));
  validate_found_positions(c, family, complain);
  validate_score_position(c, family, complain);
  const bool has_buckets = c.position == Position::t5 || c.score_position == Position::t5;
  if (has_buckets && c.relative_buckets < 4 && shape != FamilyShape::decoder)
    complain("relative_buckets", "must be at least 4: in an encoder half of the buckets are for later keys");
  if (has_buckets && c.relative_max_distance <= c.relative_buckets / 2) {
    complain("relative_max_distance", "must be greater than relative_buckets / 2");
  }
  if (c.n_decoder_layers && !family.has_memory) {
    complain("n_decoder_layers",
             fmt::format("architecture {} has no separate decoder: use n_layers", c.architecture.type));
  }
  if (c.projection == Projection::fused && c.has_key_bias() != c.qkv_bias.value_or(c.bias))
    complain("key_bias", "differs from qkv_bias, and a fused projection has one bias for all: set both");
  if (c.n_segments > 0 && shape != FamilyShape::encoder)
    complain("n_segments",
             fmt::format("is for an encoder: architecture {} has no segments", c.architecture.type));
  if (c.token_dropout && shape != FamilyShape::encoder)
    complain("token_dropout",
             fmt::format("is for an encoder: architecture {} hides no tokens", c.architecture.type));
  if (c.contact_regression && shape != FamilyShape::encoder) {
    complain(
        "contact_regression",
        fmt::format("is for an encoder of proteins: leave it out for architecture {}", c.architecture.type));
  }
  if (c.norm == NormKind::layer_norm_annotated && (c.d_model == 1 || (c.qk_norm && c.head_width() == 1)))
    complain("norm",
             "layer_norm_annotated needs a width of at least 2: one number has no standard deviation");
  if (!c.share_embeddings && shape != FamilyShape::encoder_decoder) {
    complain("share_embeddings", "only an encoder_decoder has two sides");
  }
  validate_mixers(c, family, complain);
  if (family.validate) family.validate(c, complain);
}

}  // namespace zoo
