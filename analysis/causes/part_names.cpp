// The names of parts on the command line.

#include <charconv>

#include <fmt/format.h>

#include "analysis/causes/ablation.h"
#include "base/error.h"

namespace zoo {
namespace {

std::optional<int64_t> whole(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || last != end || number < 0) return std::nullopt;
  return number;
}

/// "3.2", "encoder.3.2", "decoder.3.2" or "cross.3.2".
std::optional<AblatedPart> short_head(std::string_view name) {
  AblatedPart part{.place = {.kind = ActivationKind::attention_heads}};
  const auto dot = name.find('.');
  const auto side = name.substr(0, dot);
  if (side == "encoder" || side == "decoder" || side == "cross") {
    part.place.side = side == "encoder" ? StackSide::encoder : StackSide::decoder;
    if (side == "cross") part.place.kind = ActivationKind::cross_attention_heads;
    if (dot == name.npos) return std::nullopt;
    name.remove_prefix(dot + 1);
  }
  const auto middle = name.find('.');
  if (middle == name.npos) return std::nullopt;
  const auto layer = whole(name.substr(0, middle)), head = whole(name.substr(middle + 1));
  if (!layer || !head) return std::nullopt;
  part.place.layer = *layer;
  part.head = head;
  return part;
}

}  // namespace

AblatedPart ablated_part(std::string_view name) {
  if (const auto place = activation_place(name)) return {.place = *place};
  if (const auto part = short_head(name)) return *part;
  if (const auto last = name.rfind('.'); last != name.npos) {
    const auto place = activation_place(name.substr(0, last));
    const auto head = whole(name.substr(last + 1));
    const bool of_heads = place && (place->kind == ActivationKind::attention_heads ||
                                    place->kind == ActivationKind::cross_attention_heads);
    if (of_heads && head) return {.place = *place, .head = head};
  }
  throw UsageError(
      fmt::format("“{}” names no part of a model: write a head as LAYER.HEAD, such as 3.2, or a part as "
                  "layers.3.attention, "
                  "layers.3.feed_forward or residual.4",
                  name));
}

}  // namespace zoo
