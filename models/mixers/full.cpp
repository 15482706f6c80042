// Multi-head attention over all visible keys (Vaswani et al. 2017).

#include <utility>

#include "models/mixers/mixers.h"

namespace zoo {

MixerType full_mixer();

MixerType full_mixer() {
  MixerType type;
  type.name = "full";
  type.doc = "Multi-head attention over all visible keys.";
  type.make = [](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    return Attention(self_attention_options(place.model)).ptr();
  };
  type.count = [](CostAccount& account, std::string name, const MixerPlace& place,
                  const AttentionShape& shape) {
    count_attention(account, std::move(name), "self-attention", self_attention_options(place.model), shape);
  };
  return type;
}

}  // namespace zoo
