#include "models/running_mixers.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "layers/mixers/delta_net.h"
#include "layers/mixers/linear_attention.h"
#include "layers/mixers/linformer.h"
#include "layers/mixers/performer.h"
#include "layers/mixers/token_mlp.h"
#include "models/mixer_costs.h"

namespace zoo {
namespace {

// Larger than in any model, and small enough that products of such numbers do not overflow.
constexpr double kMostFeatures = 1 << 20, kMostTokens = 1 << 20, kMostSlots = 1 << 30, kMostTaps = 64;

MixerUse use_of(const MixerPlace& place) {
  return {.causal = place.is_causal(), .rotary = place.model.position == Position::rotary};
}

/// Positions that change scores do not fit a mixer without scores.
void refuse_positions(const MixerPlace& place, std::initializer_list<Position> refused,
                      std::string_view instead, const ComplainAboutMixer& complain) {
  for (const auto position : refused) {
    if (place.model.position != position) continue;
    complain(
        fmt::format("{} has no scores of pairs of tokens, to which position {} belongs: set "
                    "model.position to {}",
                    place.selection().type, name_of(position), instead));
  }
}

void refuse_dropout(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (place.model.attention_dropout > 0) {
    complain(fmt::format("{} has no attention weights to drop: set model.attention_dropout to 0",
                         place.selection().type));
  }
}

void refuse_scale(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (place.model.attention_scale) {
    complain(fmt::format("{} has no attention scores to scale: leave out model.attention_scale",
                         place.selection().type));
  }
}

// ---- Performer

struct PerformerKeys {
  std::optional<int64_t> n_features;
};

void describe(ConfigVisitor& v, PerformerKeys& keys) {
  v.field("n_features", keys.n_features, "Random features of a head; default head_dim ln head_dim, rounded.",
          Limits::between(1, kMostFeatures));
}

PerformerOptions performer_options(const MixerPlace& place) {
  return PerformerOptions(self_attention_options(place.model))
      .n_features(place.selection().as<PerformerKeys>().n_features);
}

// ---- the gated delta rule

struct DeltaKeys {
  int64_t conv = 4;
  bool gated = true, output_gate = true;
  std::optional<int64_t> key_heads;
};

void describe(ConfigVisitor& v, DeltaKeys& keys) {
  v.field("conv", keys.conv, "Taps of the causal convolution over queries, keys and values; 0 = none.",
          Limits::between(0, kMostTaps));
  v.field("gated", keys.gated, "Whether old values decay; without, this is DeltaNet.");
  v.field("output_gate", keys.output_gate, "Multiply the output by SiLU of a projection.");
  v.field("key_heads", keys.key_heads,
          "Heads of queries and keys, a divisor of n_heads; default n_heads. n_kv_heads does not count here.",
          Limits::between(1, kMostFeatures));
}

DeltaNetOptions delta_options(const MixerPlace& place) {
  const auto& config = place.model;
  const auto& keys = place.selection().as<DeltaKeys>();
  return DeltaNetOptions(config.d_model, config.n_heads)
      .n_key_heads(keys.key_heads)
      .head_dim(config.head_dim)
      .projection(config.projection)
      .qkv_bias(config.qkv_bias.value_or(config.bias))
      .out_bias(config.bias)
      .n_taps(keys.conv)
      .gated(keys.gated)
      .output_gate(keys.output_gate)
      .norm_eps(config.norm_eps);
}

void validate_delta(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (!place.is_causal()) {
    complain(
        "delta sees only the past: it is for decoders; in an encoder choose linear, performer, linformer or "
        "full");
  }
  const int64_t n_heads = place.model.n_heads;
  const int64_t key_heads = place.selection().as<DeltaKeys>().key_heads.value_or(n_heads);
  if (n_heads % key_heads != 0)
    complain(fmt::format("delta: n_heads {} is not a multiple of key_heads {}", n_heads, key_heads));
  refuse_positions(place, {Position::alibi, Position::t5, Position::shaw},
                   "none, sinusoidal, learned or rotary", complain);
  refuse_dropout(place, complain);
  refuse_scale(place, complain);
}

// ---- Linformer

struct LinformerKeys {
  int64_t k = 256;
  LinformerSharing share = LinformerSharing::heads;
};

void describe(ConfigVisitor& v, LinformerKeys& keys) {
  v.field("k", keys.k, "Slots onto which keys and values are projected, at most max_positions.",
          Limits::between(1, kMostSlots));
  v.field("share", keys.share,
          "Which projections are the same: of all heads, also of keys and values, or of all layers.");
}

PositionProjectionOptions projection_options(const MixerPlace& place) {
  const auto& keys = place.selection().as<LinformerKeys>();
  return PositionProjectionOptions(keys.k, place.model.max_positions)
      .separate_values(keys.share == LinformerSharing::heads);
}

std::string shared_name(const LinformerKeys& keys) { return fmt::format("linformer_{}", keys.k); }

std::shared_ptr<MixerImpl> make_linformer(const MixerPlace& place) {
  const auto& keys = place.selection().as<LinformerKeys>();
  const auto attention = self_attention_options(place.model);
  const auto projection = projection_options(place);
  if (keys.share != LinformerSharing::layer || !place.shared)
    return std::make_shared<LinformerImpl>(attention, projection);
  return std::make_shared<LinformerImpl>(attention,
                                         place.shared->get<PositionProjectionImpl>(shared_name(keys), [&] {
                                           return std::make_shared<PositionProjectionImpl>(projection);
                                         }));
}

/// Whether an earlier layer of the stack has the same shared projection.
bool is_made_earlier(const MixerPlace& place) {
  const auto& keys = place.selection().as<LinformerKeys>();
  for (int64_t layer = 0; layer < place.layer; ++layer) {
    const auto& other = place.model.attention_of(layer);
    if (other.type != place.selection().type) continue;
    const auto& theirs = other.as<LinformerKeys>();
    if (theirs.share == LinformerSharing::layer && theirs.k == keys.k) return true;
  }
  return false;
}

void count_linformer_layer(CostAccount& account, const std::string& name, const MixerPlace& place,
                           const AttentionShape& shape) {
  const auto& keys = place.selection().as<LinformerKeys>();
  count_linformer(account, name, self_attention_options(place.model), keys.k, shape);
  if (keys.share != LinformerSharing::layer) {
    count_position_projection(account, account.path(name, "projection"), projection_options(place));
  } else if (!is_made_earlier(place)) {
    const auto stack = name.substr(0, name.find(".layers."));
    count_position_projection(account, account.path(stack, shared_name(keys)), projection_options(place));
  }
}

void validate_linformer(const MixerPlace& place, const ComplainAboutMixer& complain) {
  const int64_t k = place.selection().as<LinformerKeys>().k, most = place.model.max_positions;
  if (place.is_causal()) {
    complain(
        "linformer cannot be causal, because a slot mixes all positions: it is for encoders; in a decoder "
        "choose linear, performer, delta or full");
  }
  if (k > most)
    complain(fmt::format("linformer: k {} is more than max_positions {}: set a smaller k", k, most));
  refuse_positions(place, {Position::alibi, Position::t5, Position::shaw, Position::rotary},
                   "none, sinusoidal or learned", complain);
}

// ---- the MLP over tokens

struct MlpKeys {
  std::optional<int64_t> length, d_tokens;
};

void describe(ConfigVisitor& v, MlpKeys& keys) {
  v.field("length", keys.length, "Tokens of a sequence, such as the patches of an image; needed.",
          Limits::between(1, kMostTokens));
  v.field("d_tokens", keys.d_tokens, "Inner width; default d_model / 2.", Limits::between(1, kMostTokens));
}

TokenMlpOptions mlp_options(const MixerPlace& place) {
  const auto& keys = place.selection().as<MlpKeys>();
  const int64_t width = std::max<int64_t>(place.model.d_model / 2, 1);
  return TokenMlpOptions(keys.length.value_or(1), keys.d_tokens.value_or(width))
      .bias(place.model.bias)
      .dropout(place.model.activation_dropout);
}

void validate_mlp(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (!place.selection().as<MlpKeys>().length)
    complain("mlp needs the number of tokens, such as {type: mlp, length: 49}");
  if (place.is_causal()) {
    complain(
        "mlp cannot be causal, because each token sees all of them: it is for encoders; in a decoder choose "
        "linear, performer, delta or full");
  }
  refuse_positions(place, {Position::alibi, Position::t5, Position::shaw, Position::rotary},
                   "none, sinusoidal or learned", complain);
  refuse_dropout(place, complain);
  refuse_scale(place, complain);
}

}  // namespace

MixerType linear_mixer() {
  MixerType type;
  type.name = "linear";
  type.doc = "Linear attention (Katharopoulos et al. 2020): elu + 1 in place of softmax.";
  type.complexity = "nd²";
  type.make = [](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    return LinearAttention(self_attention_options(place.model)).ptr();
  };
  type.count = [](CostAccount& account, std::string name, const MixerPlace& place,
                  const AttentionShape& shape) {
    count_linear_attention(account, std::move(name), self_attention_options(place.model), use_of(place),
                           shape);
  };
  type.validate = [](const MixerPlace& place, const ComplainAboutMixer& complain) {
    refuse_positions(place, {Position::alibi, Position::t5, Position::shaw},
                     "none, sinusoidal, learned or rotary", complain);
    refuse_dropout(place, complain);
    refuse_scale(place, complain);
  };
  return type;
}

MixerType performer_mixer() {
  MixerType type;
  type.name = "performer";
  type.doc = "Performer (Choromanski et al. 2020): softmax estimated by random features.";
  type.complexity = "nmd";
  type.make_options = options_of<PerformerKeys>();
  type.make = [](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    return Performer(performer_options(place)).ptr();
  };
  type.count = [](CostAccount& account, std::string name, const MixerPlace& place,
                  const AttentionShape& shape) {
    count_performer(account, std::move(name), performer_options(place), use_of(place), shape);
  };
  type.validate = [](const MixerPlace& place, const ComplainAboutMixer& complain) {
    refuse_positions(place, {Position::alibi, Position::t5, Position::shaw},
                     "none, sinusoidal, learned or rotary", complain);
    refuse_dropout(place, complain);
  };
  return type;
}

MixerType delta_mixer() {
  MixerType type;
  type.name = "delta";
  type.doc = "The gated delta rule (Yang et al. 2024, Gated DeltaNet); for decoders.";
  type.complexity = "nd²";
  type.make_options = options_of<DeltaKeys>();
  type.make = [](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    return DeltaNet(delta_options(place)).ptr();
  };
  type.count = [](CostAccount& account, std::string name, const MixerPlace& place,
                  const AttentionShape& shape) {
    count_delta_net(account, std::move(name), delta_options(place), shape);
  };
  type.validate = validate_delta;
  type.no_maps = "remembers a sum of the past and has no weights of tokens";
  return type;
}

MixerType linformer_mixer() {
  MixerType type;
  type.name = "linformer";
  type.doc = "Linformer (Wang et al. 2020): attention over projected positions; for encoders.";
  type.complexity = "nkd";
  type.make_options = options_of<LinformerKeys>();
  type.make = make_linformer;
  type.count = count_linformer_layer;
  type.validate = validate_linformer;
  type.no_maps = "has weights of slots rather than of tokens";
  return type;
}

MixerType mlp_mixer() {
  MixerType type;
  type.name = "mlp";
  type.doc = "MLP over a fixed number of tokens (MLP-Mixer, Tolstikhin et al. 2021); for encoders.";
  type.complexity = "nmd";
  type.make_options = options_of<MlpKeys>();
  type.make = [](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    return TokenMlp(mlp_options(place)).ptr();
  };
  type.count = [](CostAccount& account, std::string name, const MixerPlace& place,
                  const AttentionShape& shape) {
    count_token_mlp(account, std::move(name), mlp_options(place), place.model.d_model, shape);
  };
  type.validate = validate_mlp;
  type.n_tokens = [](const MixerPlace& place) { return mlp_options(place).n_tokens(); };
  type.no_maps = "has weights of places rather than of tokens";
  return type;
}

}  // namespace zoo
