#include "models/pattern_mixers.h"

#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "layers/attention/attention.h"
#include "layers/patterns/sparse_patterns.h"
#include "layers/patterns/window_pattern.h"

namespace zoo {
namespace {

constexpr double kLargest = 1 << 30;

}  // namespace

void describe(ConfigVisitor& v, WindowConfig& c) {
  v.field("size", c.size, "Keys that a query sees on each side besides its own; in a decoder, before it.",
          Limits::between(1, kLargest));
  v.field("dilation", c.dilation, "Distance between the keys of the window.", Limits::between(1, kLargest));
  v.field("global", c.global, "Tokens that see and are seen everywhere.");
  v.field("n_global", c.n_global, "global first: how many.", Limits::between(1, kLargest));
  v.field("global_ids", c.global_ids, "global ids: the ids of these tokens.", Limits::between(0, kLargest));
  v.field("global_projections", c.global_projections,
          "Global queries have projections of their own (Longformer).");
}

void describe(ConfigVisitor& v, StridedConfig& c) {
  v.field("stride", c.stride,
          "A query sees distances below this, and its multiples; default the root of max_positions.",
          Limits::between(2, kLargest));
}

void describe(ConfigVisitor& v, FixedConfig& c) {
  v.field("stride", c.stride, "Positions of a block; default the root of max_positions.",
          Limits::between(2, kLargest));
  v.field("n_summary", c.n_summary, "Last positions of each block that every query sees.",
          Limits::between(1, kLargest));
}

void describe(ConfigVisitor& v, BlocksConfig& c) {
  v.field("size", c.size, "Positions of a block.", Limits::between(1, kLargest));
  v.field("window", c.window, "Neighbouring blocks that a block sees on each side.",
          Limits::between(0, kLargest));
  v.field("n_global", c.n_global,
          "First blocks that see and are seen everywhere; in an encoder also as many last ones.",
          Limits::between(0, kLargest));
  v.field("n_random", c.n_random, "Random blocks that a block sees.", Limits::between(0, kLargest));
  v.field("seed", c.seed, "Seed of the random blocks; each layer draws its own.",
          Limits::between(0, kLargest));
}

namespace {

using Pattern = std::shared_ptr<const AttentionPattern>;

Direction direction_of(const MixerPlace& place) {
  return place.is_causal() ? Direction::causal : Direction::bidirectional;
}

int64_t root_of_length(const ModelConfig& config) {
  return std::max<int64_t>(std::llround(std::sqrt(static_cast<double>(config.max_positions))), 2);
}

Pattern window_pattern(const MixerPlace& place) {
  const auto& c = place.selection().as<WindowConfig>();
  auto options = WindowOptions().size(c.size).dilation(c.dilation).global_queries(!c.global_projections);
  if (c.global == GlobalTokens::first) options.n_global(c.n_global);
  if (c.global == GlobalTokens::class_token) options.n_global(1);
  if (c.global == GlobalTokens::ids) options.global_ids(c.global_ids);
  return std::make_shared<WindowPattern>(direction_of(place), options);
}

Pattern strided_pattern(const MixerPlace& place) {
  const auto& c = place.selection().as<StridedConfig>();
  return std::make_shared<StridedPattern>(direction_of(place),
                                          c.stride.value_or(root_of_length(place.model)));
}

Pattern fixed_pattern(const MixerPlace& place) {
  const auto& c = place.selection().as<FixedConfig>();
  return std::make_shared<FixedPattern>(direction_of(place), c.stride.value_or(root_of_length(place.model)),
                                        c.n_summary);
}

Pattern blocks_pattern(const MixerPlace& place) {
  const auto& c = place.selection().as<BlocksConfig>();
  return std::make_shared<BlocksPattern>(direction_of(place), BlockOptions()
                                                                  .size(c.size)
                                                                  .n_window(c.window)
                                                                  .n_global(c.n_global)
                                                                  .n_random(c.n_random)
                                                                  .seed(c.seed + place.layer));
}

/// Reports what fits with no pattern.
void validate_pattern(const MixerPlace& place, const ComplainAboutMixer& complain) {
  const auto position = place.model.position;
  if (position == Position::t5 || position == Position::alibi || position == Position::shaw) {
    complain(
        fmt::format("{} cannot have position {}, which needs the scores of all pairs: use rotary, learned "
                    "or sinusoidal",
                    place.selection().type, name_of(position)));
  }
}

/// Reports a distance that no two positions have.
void validate_distance(const MixerPlace& place, std::string_view key, int64_t distance,
                       const ComplainAboutMixer& complain) {
  if (distance < place.model.max_positions) return;
  complain(fmt::format("{} has {} {}, but max_positions is {}: make it smaller", place.selection().type, key,
                       distance, place.model.max_positions));
}

void validate_window(const MixerPlace& place, const ComplainAboutMixer& complain) {
  validate_pattern(place, complain);
  const auto& c = place.selection().as<WindowConfig>();
  validate_distance(place, "dilation", c.dilation, complain);
  if (c.global == GlobalTokens::first) validate_distance(place, "n_global", c.n_global, complain);
  if (c.global != GlobalTokens::first && c.n_global != WindowConfig().n_global)
    complain("window has n_global, which is for global: first");
  if ((c.global == GlobalTokens::ids) == c.global_ids.empty())
    complain("window needs global: ids and a list global_ids together");
  if (place.is_causal() && (c.global == GlobalTokens::class_token || c.global == GlobalTokens::ids)) {
    complain(fmt::format("window has global: {}, which is for encoders: use global: first in a decoder",
                         name_of(c.global)));
  }
  if (!c.global_projections) return;
  if (place.is_causal() || c.global == GlobalTokens::none)
    complain("window has global_projections, which are for the global tokens of an encoder");
  if (place.model.kv_heads() != place.model.n_heads)
    complain(
        "window has global_projections, which need as many key heads as query heads: leave out n_kv_heads");
}

void validate_strided(const MixerPlace& place, const ComplainAboutMixer& complain) {
  validate_pattern(place, complain);
  const auto& c = place.selection().as<StridedConfig>();
  if (c.stride) validate_distance(place, "stride", *c.stride, complain);
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

void validate_blocks(const MixerPlace& place, const ComplainAboutMixer& complain) {
  validate_pattern(place, complain);
  validate_distance(place, "size", place.selection().as<BlocksConfig>().size, complain);
}

/// The options of the attention of a pattern.
AttentionOptions options_with(Pattern pattern, const MixerPlace& place) {
  return self_attention_options(place.model).pattern(std::move(pattern));
}

AttentionOptions window_options(const MixerPlace& place) {
  return options_with(window_pattern(place), place)
      .global_projections(place.selection().as<WindowConfig>().global_projections);
}

/// A type whose attention has the options that `options` gives.
MixerType attention_type(std::string name, std::string doc,
                         std::function<AttentionOptions(const MixerPlace&)> options) {
  MixerType type;
  type.name = std::move(name);
  type.doc = std::move(doc);
  type.make = [options](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    return Attention(options(place)).ptr();
  };
  type.count = [options](CostAccount& account, std::string path, const MixerPlace& place,
                         const AttentionShape& shape) {
    count_attention(account, std::move(path), "self-attention", options(place), shape);
  };
  return type;
}

}  // namespace

MixerType window_attention() {
  auto type =
      attention_type("window", "A sliding window, and global tokens (Longformer, Mistral).", window_options);
  type.complexity = "nwd";
  type.make_options = options_of<WindowConfig>();
  type.validate = validate_window;
  return type;
}

MixerType strided_attention() {
  auto type = attention_type("strided", "Near keys, and keys at multiples of a stride (Sparse Transformer).",
                             [](const auto& place) { return options_with(strided_pattern(place), place); });
  type.complexity = "n√n d";
  type.make_options = options_of<StridedConfig>();
  type.validate = validate_strided;
  return type;
}

MixerType fixed_attention() {
  auto type = attention_type("fixed", "A block, and the last keys of every block (Sparse Transformer).",
                             [](const auto& place) { return options_with(fixed_pattern(place), place); });
  type.complexity = "n√n d";
  type.make_options = options_of<FixedConfig>();
  type.validate = validate_fixed;
  return type;
}

MixerType blocks_attention() {
  auto type = attention_type("blocks", "Neighbouring, global and random blocks (BigBird).",
                             [](const auto& place) { return options_with(blocks_pattern(place), place); });
  type.complexity = "nwd";
  type.make_options = options_of<BlocksConfig>();
  type.validate = validate_blocks;
  return type;
}

}  // namespace zoo
