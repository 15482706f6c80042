#pragma once
// The types of `model.attention` that remember sums of a fixed size, see a fixed number of slots, or have
// weights for a fixed number of tokens, in place of softmax over keys (layers/mixers/).

#include "models/mixers.h"

namespace zoo {

MixerType linear_mixer();
MixerType performer_mixer();
MixerType delta_mixer();
MixerType linformer_mixer();
MixerType mlp_mixer();

}  // namespace zoo
