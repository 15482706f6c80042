#include "pages/page_picture.h"

#include <algorithm>
#include <cstdint>

#include "data/images/augment.h"
#include "data/images/image_file.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {

std::string picture_uri(const Image& picture) {
  constexpr int64_t most_side = 1600;  // in pixels
  const auto& [channels, height, width] = picture.shape;
  const int64_t side = std::max(height, width);
  if (side <= most_side) return "data:image/png;base64," + to_base64(encode_png(picture));
  const auto smaller = [&](int64_t length) { return std::max<int64_t>(1, length * most_side / side); };
  const Rectangle whole{.top = 0, .left = 0, .height = height, .width = width};
  return "data:image/png;base64," +
         to_base64(encode_png(resized(picture, whole, smaller(height), smaller(width))));
}

}  // namespace zoo
