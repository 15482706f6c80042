#pragma once
// PNG and JPEG files, which may come from strangers.

#include <filesystem>
#include <string_view>

#include "data/images/image.h"
#include "io/open_file.h"

namespace zoo {

/// The most that decoding one image may take.
struct DecodingLimits {
  /// Images with more are refused before any pixel is decoded.
  int64_t pixels = int64_t{64} << 20;
  int64_t bytes = int64_t{1} << 30;
};

/// Decodes the content of a PNG or JPEG file. Colours become grey, and grey becomes colours, as n_channels (1
/// or 3) asks; transparency is left out; 16 bits become 8. Throws DataError, which calls the image `name`,
/// for another format, a damaged or truncated file, and an image beyond the limits.
Image decode_image(std::string_view bytes, std::string_view name, int64_t n_channels,
                   const DecodingLimits& limits = {});

/// The same for a file.
Image read_image(const std::filesystem::path& path, Follow follow, int64_t n_channels);

/// Whether the name of a file ends as those of images: .png, .jpg, .jpeg.
bool is_image_name(const std::filesystem::path& path);

/// The content of a PNG file with this image.
std::string encode_png(const Image& image);

}  // namespace zoo
