#include "models/mixers/mixer_checks.h"

#include <string_view>

#include <fmt/format.h>

#include "models/config/layer_types.h"

namespace zoo {

void require_positions(const MixerPlace& place, MixerPositions allowed, const ComplainAboutMixer& complain) {
  const bool rotary = allowed == MixerPositions::absolute_or_rotary;
  const auto& position = place.model.position;
  if (needs_scores(place.model) || (position == Position::rotary && !rotary)) {
    complain(
        fmt::format("{} has no scores of pairs of tokens, to which position {} belongs: set "
                    "model.position to {}",
                    place.selection().type, position.type,
                    rotary ? "none, sinusoidal, learned or rotary" : "none, sinusoidal or learned"));
  }
}

void refuse_dropout(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (place.model.attention_dropout > 0) {
    complain(fmt::format("{} has no attention weights to drop: set model.attention_dropout to 0",
                         place.selection().type));
  }
}

void refuse_softcap(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (place.model.attention_softcap) {
    complain(fmt::format("{} has no attention scores to cap: leave out model.attention_softcap",
                         place.selection().type));
  }
}

void refuse_scores(const MixerPlace& place, MixerPositions allowed, const ComplainAboutMixer& complain) {
  require_positions(place, allowed, complain);
  refuse_dropout(place, complain);
  const auto refuse_scale = [&](std::string_view key) {
    complain(
        fmt::format("{} has no attention scores to scale: leave out model.{}", place.selection().type, key));
  };
  if (place.model.attention_scale) refuse_scale("attention_scale");
  if (place.model.attention_scale_by_layer) refuse_scale("attention_scale_by_layer");
  if (place.model.rotary.mscale_all_dim > 0) refuse_scale("rotary.mscale_all_dim");
  refuse_softcap(place, complain);
}

}  // namespace zoo
