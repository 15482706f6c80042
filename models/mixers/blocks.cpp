#include "models/mixers/blocks.h"

#include <memory>

#include <fmt/format.h>

#include "layers/attention/kinds/sparse_patterns.h"
#include "models/mixers/attention_type.h"

namespace zoo {

void describe(ConfigVisitor& v, BlocksConfig& c) {
  v.field("size", c.size, "Positions of a block.", Limits::between(1, kLargestDistance));
  v.field("window", c.window, "Neighbouring blocks that a block sees on each side.",
          Limits::between(0, kLargestDistance));
  v.field("n_global", c.n_global,
          "First blocks that see and are seen everywhere; in an encoder also as many last ones.",
          Limits::between(0, kLargestDistance));
  v.field("n_random", c.n_random, "Random blocks that a block sees.", Limits::between(0, kLargestDistance));
  v.field("seed", c.seed, "Seed of the random blocks; each layer draws its own.",
          Limits::between(0, kLargestDistance));
  v.field("full_up_to", c.full_up_to,
          "encoder: sequences of at most so many positions see everything, as BigBird in transformers.",
          Limits::between(0, kLargestDistance));
}

namespace {

std::shared_ptr<const AttentionPattern> blocks_pattern(const MixerPlace& place) {
  const auto& c = place.selection().as<BlocksConfig>();
  return std::make_shared<BlocksPattern>(place.direction(), BlockOptions()
                                                                .size(c.size)
                                                                .n_window(c.window)
                                                                .n_global(c.n_global)
                                                                .n_random(c.n_random)
                                                                .seed(c.seed + place.layer)
                                                                .full_up_to(c.full_up_to));
}

void validate_blocks(const MixerPlace& place, const ComplainAboutMixer& complain) {
  validate_pattern(place, complain);
  const auto& c = place.selection().as<BlocksConfig>();
  validate_distance(place, "size", c.size, complain);
  if (c.full_up_to > 0 && place.direction() == Direction::causal)
    complain("full_up_to is for an encoder: a decoder would see more or less as its text grows");
}

}  // namespace

MixerType blocks_mixer() {
  auto type = attention_type("blocks", "Neighbouring, global and random blocks (BigBird).",
                             [](const auto& place) { return options_with(blocks_pattern(place), place); });
  type.complexity = "nwd";
  type.make_options = options_of<BlocksConfig>();
  type.validate = validate_blocks;
  return type;
}

}  // namespace zoo
