#pragma once

#include <cstdint>
#include <vector>

#include "models/batch.h"

namespace zoo {

/// An image in memory: C · H · W numbers from 0 to 255, channel by channel, row by row.
struct Image {
  ImageShape shape;
  std::vector<uint8_t> pixels;
};

}  // namespace zoo
