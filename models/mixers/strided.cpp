#include "models/mixers/strided.h"

#include <memory>

#include <fmt/format.h>

#include "layers/attention/kinds/sparse_patterns.h"
#include "models/mixers/attention_type.h"

namespace zoo {

void describe(ConfigVisitor& v, StridedConfig& c) {
  v.field("stride", c.stride,
          "A query sees distances below this, and its multiples; default the root of max_positions.",
          Limits::between(2, kLargestDistance));
}

namespace {

std::shared_ptr<const AttentionPattern> strided_pattern(const MixerPlace& place) {
  const auto& c = place.selection().as<StridedConfig>();
  return std::make_shared<StridedPattern>(place.direction(), c.stride.value_or(root_of_length(place.model)));
}

void validate_strided(const MixerPlace& place, const ComplainAboutMixer& complain) {
  validate_pattern(place, complain);
  const auto& c = place.selection().as<StridedConfig>();
  if (c.stride) validate_distance(place, "stride", *c.stride, complain);
}

}  // namespace

MixerType strided_mixer() {
  auto type = attention_type("strided", "Near keys, and keys at multiples of a stride (Sparse Transformer).",
                             [](const auto& place) { return options_with(strided_pattern(place), place); });
  type.complexity = "n√n d";
  type.make_options = options_of<StridedConfig>();
  type.validate = validate_strided;
  return type;
}

}  // namespace zoo
