#pragma once
// Neighbouring, global and random blocks (BigBird, Zaheer et al. 2020).

#include <cstdint>
#include <optional>

#include "models/mixers/mixers.h"

namespace zoo {

struct BlocksConfig {
  int64_t size = 64;
  int64_t window = 1;
  int64_t n_global = 1;
  int64_t n_random = 3;
  int64_t seed = 0;
  int64_t full_up_to = 0;
};
void describe(ConfigVisitor& v, BlocksConfig& c);

}  // namespace zoo
