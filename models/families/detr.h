#pragma once
// The keys of the family detr.

#include <cstdint>

#include "models/embedders/resnet.h"

namespace zoo {

/// The keys of the family, beside `type: detr`.
struct DetrConfig {
  int64_t n_queries = 100;
  int64_t max_places = 50;  // rows, and columns, of the largest feature map with learned positions
  ResnetConfig backbone = {};
};
void describe(ConfigVisitor& v, DetrConfig& c);

}  // namespace zoo
