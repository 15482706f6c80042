#include "models/mixers/fixed.h"

#include <memory>

#include <fmt/format.h>

#include "layers/attention/kinds/sparse_patterns.h"
#include "models/mixers/attention_type.h"

namespace zoo {

void describe(ConfigVisitor& v, FixedConfig& c) {
  v.field("stride", c.stride, "Positions of a block; default the root of max_positions.",
          Limits::between(2, kLargestDistance));
  v.field("n_summary", c.n_summary, "Last positions of each block that every query sees.",
          Limits::between(1, kLargestDistance));
}

namespace {

std::shared_ptr<const AttentionPattern> fixed_pattern(const MixerPlace& place) {
  const auto& c = place.selection().as<FixedConfig>();
  return std::make_shared<FixedPattern>(place.direction(), c.stride.value_or(root_of_length(place.model)),
                                        c.n_summary);
}

void validate_fixed(const MixerPlace& place, const ComplainAboutMixer& complain) {
  validate_pattern(place, complain);
  const auto& c = place.selection().as<FixedConfig>();
  if (c.stride) validate_distance(place, "stride", *c.stride, complain);
  const int64_t stride = c.stride.value_or(root_of_length(place.model));
  if (c.n_summary >= stride)
    complain(
        fmt::format("fixed has n_summary {}, which must be less than its stride {}", c.n_summary, stride));
}

}  // namespace

MixerType fixed_mixer() {
  auto type = attention_type("fixed", "A block, and the last keys of every block (Sparse Transformer).",
                             [](const auto& place) { return options_with(fixed_pattern(place), place); });
  type.complexity = "n√n d";
  type.make_options = options_of<FixedConfig>();
  type.validate = validate_fixed;
  return type;
}

}  // namespace zoo
