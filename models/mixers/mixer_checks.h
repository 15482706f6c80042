#pragma once
// Checks that several mixers share: keys of a model that do not fit a mixer without scores of pairs of
// tokens.

#include <initializer_list>
#include <string_view>

#include "models/mixers/mixers.h"

namespace zoo {

/// Complains if the model has one of the `refused` positions, and names the ones to take `instead`.
void refuse_positions(const MixerPlace& place, std::initializer_list<Position> refused,
                      std::string_view instead, const ComplainAboutMixer& complain);
/// Complains about model.attention_dropout.
void refuse_dropout(const MixerPlace& place, const ComplainAboutMixer& complain);
/// Complains about model.attention_softcap.
void refuse_softcap(const MixerPlace& place, const ComplainAboutMixer& complain);
/// Complains about model.attention_scale and model.attention_softcap.
void refuse_scale(const MixerPlace& place, const ComplainAboutMixer& complain);

}  // namespace zoo
