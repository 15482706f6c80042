#pragma once
// Checks that several mixers share: keys of a model that do not fit a mixer without scores of pairs of
// tokens.

#include "models/mixers/mixers.h"

namespace zoo {

/// The positions that such a mixer can have: none, sinusoidal or learned, and rotary if it has queries and
/// keys.
enum class MixerPositions { absolute, absolute_or_rotary };

/// Complains about other positions.
void require_positions(const MixerPlace& place, MixerPositions allowed, const ComplainAboutMixer& complain);
/// Complains about model.attention_dropout.
void refuse_dropout(const MixerPlace& place, const ComplainAboutMixer& complain);
/// Complains about model.attention_softcap.
void refuse_softcap(const MixerPlace& place, const ComplainAboutMixer& complain);
/// Complains about all keys of scores: about other positions, and a dropout, scale and softcap of attention.
void refuse_scores(const MixerPlace& place, MixerPositions allowed, const ComplainAboutMixer& complain);

}  // namespace zoo
