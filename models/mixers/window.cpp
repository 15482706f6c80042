#include "models/mixers/window.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "layers/attention/kinds/longformer_attention.h"
#include "layers/attention/window_pattern.h"
#include "models/mixers/attention_type.h"

namespace zoo {

void describe(ConfigVisitor& v, WindowConfig& c) {
  v.field("size", c.size, "Keys that a query sees on each side besides its own; in a decoder, before it.",
          Limits::between(1, kLargestDistance));
  v.field("dilation", c.dilation, "Distance between the keys of the window.",
          Limits::between(1, kLargestDistance));
  v.field("global", c.global, "Tokens that see and are seen everywhere.");
  v.field("n_global", c.n_global, "global first: how many.", Limits::between(1, kLargestDistance));
  v.field("global_ids", c.global_ids, "global ids: the ids of these tokens.",
          Limits::between(0, kLargestDistance));
  v.field("global_projections", c.global_projections,
          "Global queries have projections of their own (Longformer).");
}

namespace {

std::shared_ptr<const WindowPattern> window_pattern(const MixerPlace& place) {
  const auto& c = place.selection().as<WindowConfig>();
  auto options = WindowOptions().size(c.size).dilation(c.dilation).global_queries(!c.global_projections);
  if (c.global == GlobalTokens::first) options.n_global(c.n_global);
  if (c.global == GlobalTokens::class_token) options.n_global(1);
  if (c.global == GlobalTokens::ids) options.global_ids(c.global_ids);
  return std::make_shared<WindowPattern>(place.direction(), options);
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

AttentionOptions window_options(const MixerPlace& place) {
  return options_with(window_pattern(place), place);
}

bool has_global_projections(const MixerPlace& place) {
  return place.selection().as<WindowConfig>().global_projections;
}

}  // namespace

MixerType window_mixer() {
  auto type =
      attention_type("window", "A sliding window, and global tokens (Longformer, Mistral).", window_options);
  type.make = [make = type.make](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    if (!has_global_projections(place)) return make(place);
    return LongformerAttention(self_attention_options(place), window_pattern(place)).ptr();
  };
  type.count = [count = type.count](CostAccount& account, std::string path, const MixerPlace& place,
                                    const AttentionShape& shape) {
    if (!has_global_projections(place)) return count(account, std::move(path), place, shape);
    count_longformer_attention(account, std::move(path), window_options(place), shape);
  };
  type.complexity = "nwd";
  type.is_local = true;
  type.make_options = options_of<WindowConfig>();
  type.validate = validate_window;
  return type;
}

}  // namespace zoo
