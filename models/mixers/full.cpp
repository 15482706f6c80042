// Multi-head attention over all visible keys (Vaswani et al. 2017).

#include "models/mixers/attention_type.h"

namespace zoo {

MixerType full_mixer() {
  return attention_type("full", "Multi-head attention over all visible keys.",
                        [](const MixerPlace& place) { return self_attention_options(place); });
}

}  // namespace zoo
