#pragma once
// PNG, JPEG and WebP files, which may come from strangers.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "data/image_config.h"
#include "data/images/decoders.h"
#include "data/images/image.h"
#include "io/open_file.h"

namespace zoo {

/// The most that a file may have; more is not read.
inline constexpr int64_t kMostImageBytes = int64_t{512} << 20;

/// Decodes the content of a PNG, JPEG or WebP file. The result is upright as Exif data say. Colours become
/// grey, and grey becomes colours, as n_channels (1 or 3) asks; 16 bits become 8. Throws DataError, which
/// calls the image `name`, for another format, a damaged or truncated file, an animation, an image beyond the
/// limits, and WebP where the program was built without libwebp.
Image decode_image(std::string_view bytes, std::string_view name, int64_t n_channels,
                   const DecodingLimits& limits = {}, Transparency transparency = Transparency::white);

/// The same for a file of at most kMostImageBytes.
Image read_image(const std::filesystem::path& path, Follow follow, int64_t n_channels,
                 Transparency transparency = Transparency::white);

/// read(index), where read(0) … read(n - 1) decode the images of a set. If it cannot be decoded, all are
/// tried, so that one DataError names every file that must be repaired; of many only the first.
Image read_of_set(int64_t index, int64_t n, const std::function<Image(int64_t)>& read);

/// Whether the name of a file ends as those of images: .png, .jpg, .jpeg, .webp.
bool is_image_name(const std::filesystem::path& path);

/// The content of a PNG file with this image.
std::string encode_png(const Image& image);

}  // namespace zoo
