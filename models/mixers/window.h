#pragma once
// A sliding window, dilated or not, with global tokens (Longformer, Beltagy et al. 2020; the layers of
// Mistral and Gemma).

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/mixers/mixers.h"

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

}  // namespace zoo
