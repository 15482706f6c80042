#pragma once
// The types of `model.attention` whose queries see the keys of a pattern only.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/mixers.h"

namespace zoo {

/// The global tokens of a window.
enum class GlobalTokens { none, first, class_token, ids };
constexpr auto config_names(GlobalTokens) {
  return std::to_array<std::string_view>({"none", "first", "class", "ids"});
}

struct WindowConfig {
  int64_t size = 256;
  int64_t dilation = 1;
  GlobalTokens global = GlobalTokens::none;
  int64_t n_global = 1;
  std::vector<int64_t> global_ids = {};
  bool global_projections = false;
};
void describe(ConfigVisitor& v, WindowConfig& c);

struct StridedConfig {
  std::optional<int64_t> stride;
};
void describe(ConfigVisitor& v, StridedConfig& c);

struct FixedConfig {
  std::optional<int64_t> stride;
  int64_t n_summary = 1;
};
void describe(ConfigVisitor& v, FixedConfig& c);

struct BlocksConfig {
  int64_t size = 64;
  int64_t window = 1;
  int64_t n_global = 1;
  int64_t n_random = 3;
  int64_t seed = 0;
};
void describe(ConfigVisitor& v, BlocksConfig& c);

/// "window": a sliding window, dilated or not, with global tokens (Longformer; Mistral's and Gemma's layers).
MixerType window_attention();
/// "strided" and "fixed" (Sparse Transformer).
MixerType strided_attention();
MixerType fixed_attention();
/// "blocks": neighbouring, global and random blocks (BigBird).
MixerType blocks_attention();

}  // namespace zoo
