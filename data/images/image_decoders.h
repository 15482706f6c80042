#pragma once
// The formats that data/images/image_file.cpp reads.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/images/image_file.h"

namespace zoo {

/// The pixels as a file stores them, row by row.
struct Pixels {
  int64_t n_channels = 0;  // 1: grey; 3: red, green, blue; 4: these and the opacity
  int64_t height = 0, width = 0;
  std::vector<uint8_t> values = {};
  int64_t orientation = 1;  // from 1 to 8, as Exif numbers them (data/images/exif.h)
};

/// Thrown by decoders, and given the name of the image by their caller.
struct DecodingProblem {
  std::string text;
};

/// Throws DecodingProblem.
void check_size(int64_t height, int64_t width, const DecodingLimits& limits);

bool is_png(std::string_view bytes);
bool is_jpeg(std::string_view bytes);
bool is_webp(std::string_view bytes);

/// Each throws DecodingProblem.
Pixels decode_png(std::string_view bytes, const DecodingLimits& limits);
Pixels decode_jpeg(std::string_view bytes, const DecodingLimits& limits);
/// Also where the program was built without libwebp.
Pixels decode_webp(std::string_view bytes, const DecodingLimits& limits);

}  // namespace zoo
