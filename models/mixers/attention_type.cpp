#include "models/mixers/attention_type.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "layers/attention/attention.h"
#include "layers/attention/kinds/shaw_attention.h"
#include "models/config/layer_types.h"

namespace zoo {

int64_t root_of_length(const ModelConfig& config) {
  return std::max<int64_t>(std::llround(std::sqrt(static_cast<double>(config.max_positions))), 2);
}

void validate_pattern(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (needs_scores(place.model)) {
    complain(
        fmt::format("{} cannot have position {}, which needs the scores of all pairs: use rotary, learned "
                    "or sinusoidal",
                    place.selection().type, place.model.position.type));
  }
}

void validate_distance(const MixerPlace& place, std::string_view key, int64_t distance,
                       const ComplainAboutMixer& complain) {
  if (distance < place.model.max_positions) return;
  complain(fmt::format("{} has {} {}, but max_positions is {}: make it smaller", place.selection().type, key,
                       distance, place.model.max_positions));
}

AttentionOptions options_with(std::shared_ptr<const AttentionPattern> pattern, const MixerPlace& place) {
  return self_attention_options(place).pattern(std::move(pattern));
}

MixerType attention_type(std::string name, std::string doc,
                         const std::function<AttentionOptions(const MixerPlace&)>& options) {
  MixerType type;
  type.name = std::move(name);
  type.doc = std::move(doc);
  type.is_attention = true;
  type.make = [options](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    if (place.model.position == Position::shaw)
      return ShawAttention(options(place), place.model.relative_max_distance).ptr();
    return Attention(options(place)).ptr();
  };
  type.count = [options](CostAccount& account, std::string path, const MixerPlace& place,
                         const AttentionShape& shape) {
    if (place.model.position == Position::shaw)
      return count_shaw_attention(account, std::move(path), options(place), shape);
    count_attention(account, std::move(path), "self-attention", options(place), shape);
  };
  return type;
}

}  // namespace zoo
