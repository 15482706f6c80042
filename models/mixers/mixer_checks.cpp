#include "models/mixers/mixer_checks.h"

#include <fmt/format.h>

namespace zoo {

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

void refuse_softcap(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (place.model.attention_softcap) {
    complain(fmt::format("{} has no attention scores to cap: leave out model.attention_softcap",
                         place.selection().type));
  }
}

void refuse_scale(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (place.model.attention_scale) {
    complain(fmt::format("{} has no attention scores to scale: leave out model.attention_scale",
                         place.selection().type));
  }
  if (place.model.attention_scale_by_layer) {
    complain(fmt::format("{} has no attention scores to scale: leave out model.attention_scale_by_layer",
                         place.selection().type));
  }
  refuse_softcap(place, complain);
}

}  // namespace zoo
