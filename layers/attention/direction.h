#pragma once

#include <array>
#include <string_view>

namespace zoo {

/// Whether a query sees only earlier keys and its own (a decoder) or keys on both sides (an encoder).
enum class Direction { causal, bidirectional };
constexpr auto config_names(Direction) {
  return std::to_array<std::string_view>({"causal", "bidirectional"});
}

}  // namespace zoo
