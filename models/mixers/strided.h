#pragma once
// Near keys, and keys at multiples of a stride (Sparse Transformer, Child et al. 2019).

#include <cstdint>
#include <optional>

#include "models/mixers/mixers.h"

namespace zoo {

struct StridedConfig {
  std::optional<int64_t> stride;
};
void describe(ConfigVisitor& v, StridedConfig& c);

}  // namespace zoo
