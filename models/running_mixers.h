#pragma once
// The types of `model.attention` that remember sums of a fixed size, or see a fixed number of slots, in place
// of softmax over keys (layers/mixers/).

#include "models/mixers.h"

namespace zoo {

MixerType linear_mixer();
MixerType performer_mixer();
MixerType delta_mixer();
MixerType linformer_mixer();

}  // namespace zoo
