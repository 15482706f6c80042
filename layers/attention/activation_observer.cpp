#include "layers/attention/activation_observer.h"

#include <charconv>

#include <fmt/format.h>

namespace zoo {
namespace {

constexpr std::string_view kLayers = "layers.", kResidual = "residual.", kMemory = "memory";

/// The part of a name behind the layer; empty for a residual and the memory.
std::string_view sub_layer_name(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::attention_heads:
      return "attention.heads";
    case ActivationKind::attention:
      return "attention";
    case ActivationKind::cross_attention_heads:
      return "cross_attention.heads";
    case ActivationKind::cross_attention:
      return "cross_attention";
    case ActivationKind::feed_forward:
      return "feed_forward";
    case ActivationKind::residual:
    case ActivationKind::memory:
      break;
  }
  return {};
}

/// Takes `prefix` from the front of `text`, if it is there.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<int64_t> take_number(std::string_view& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

std::string ActivationPlace::name() const {
  const auto* const before = side == StackSide::only      ? ""
                             : side == StackSide::encoder ? "encoder."
                                                          : "decoder.";
  if (kind == ActivationKind::memory) return fmt::format("{}{}", before, kMemory);
  if (kind == ActivationKind::residual) return fmt::format("{}{}{}", before, kResidual, layer);
  return fmt::format("{}{}{}.{}", before, kLayers, layer, sub_layer_name(kind));
}

std::optional<ActivationPlace> activation_place(std::string_view name) {
  ActivationPlace place;
  if (take(name, "encoder.")) {
    place.side = StackSide::encoder;
  } else if (take(name, "decoder.")) {
    place.side = StackSide::decoder;
  }
  if (name == kMemory) {
    place.kind = ActivationKind::memory;
    return place;
  }
  const bool in_layer = take(name, kLayers);
  if (!in_layer && !take(name, kResidual)) return std::nullopt;
  const auto number = take_number(name);
  if (!number) return std::nullopt;
  place.layer = *number;
  if (!in_layer) return name.empty() ? std::optional(place) : std::nullopt;
  if (!take(name, ".")) return std::nullopt;
  for (const auto kind :
       {ActivationKind::attention_heads, ActivationKind::attention, ActivationKind::cross_attention_heads,
        ActivationKind::cross_attention, ActivationKind::feed_forward}) {
    if (name != sub_layer_name(kind)) continue;
    place.kind = kind;
    return place;
  }
  return std::nullopt;
}

}  // namespace zoo
