#pragma once
// A block, and the last keys of every block (Sparse Transformer, Child et al. 2019).

#include <cstdint>
#include <optional>

#include "models/mixers/mixers.h"

namespace zoo {

struct FixedConfig {
  std::optional<int64_t> stride;
  int64_t n_summary = 1;
};
void describe(ConfigVisitor& v, FixedConfig& c);

}  // namespace zoo
