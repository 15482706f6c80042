#pragma once
// PNG, JPEG and WebP, as data/images/image_file.h reads them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The most that decoding one image may take.
struct DecodingLimits {
  /// Images with more are refused before any pixel is decoded.
  int64_t pixels = int64_t{64} << 20;
  int64_t bytes = int64_t{1} << 30;
  /// A JPEG may have so many scans, and over all scans so many pixels: each scan may visit all of them.
  int64_t scans = 100, scanned_pixels = int64_t{1} << 30;
};

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
/// Whether the program was built with libwebp.
bool reads_webp();

/// The content of a PNG file with these pixels, in one channel or three. Throws SystemError.
std::string encode_png(const Pixels& pixels);

}  // namespace zoo
