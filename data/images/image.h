#pragma once

#include <cstdint>
#include <vector>

#include "data/batch.h"

namespace zoo {

/// An image in memory: C · H · W numbers from 0 to 255, channel by channel, row by row.
struct Image {
  ImageShape shape;
  std::vector<uint8_t> pixels;    // empty: only the shape is wanted, of whatever is made of the image
  bool has_transparency = false;  // parts of the file were transparent, and are on white here (Transparency)
};

/// The brightness of a pixel (ITU-R 601-2, as in PIL).
inline uint8_t luma(int red, int green, int blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + (1 << 15)) >> 16);
}

}  // namespace zoo
