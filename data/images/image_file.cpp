#include "data/images/image_file.h"

#include <algorithm>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "data/directory.h"
#include "data/images/decoders.h"
#include "io/file_kind.h"
#include "io/files.h"

namespace zoo {
namespace {

/// Where the pixels of an upright image lie in a plane: pixel (y, x) of the file at first + y · down + x ·
/// across.
struct Placement {
  int64_t height, width;
  int64_t first, down, across;
};

Placement placement_of(const Pixels& pixels) {
  const int64_t H = pixels.height, W = pixels.width;
  switch (pixels.orientation) {
    case 2:
      return {H, W, W - 1, W, -1};
    case 3:
      return {H, W, H * W - 1, -W, -1};
    case 4:
      return {H, W, (H - 1) * W, -W, 1};
    case 5:
      return {W, H, 0, 1, H};
    case 6:
      return {W, H, H - 1, -1, H};
    case 7:
      return {W, H, H * W - 1, -1, -H};
    case 8:
      return {W, H, (W - 1) * H, 1, -H};
    default:
      return {H, W, 0, W, 1};
  }
}

/// A number of a pixel on white ground.
uint8_t on_white(int value, int opacity) {
  constexpr int white = 255;
  return static_cast<uint8_t>((value * opacity + white * (white - opacity) + white / 2) / white);
}

/// Puts transparent pixels on white. Returns whether there are any.
bool put_on_white(Pixels& pixels) {
  constexpr uint8_t opaque = 255;
  if (pixels.n_channels != 4) return false;
  bool any = false;
  for (size_t i = 0; i < pixels.values.size(); i += 4) {
    const uint8_t opacity = pixels.values[i + 3];
    if (opacity == opaque) continue;
    any = true;
    for (size_t k = 0; k < 3; ++k) pixels.values[i + k] = on_white(pixels.values[i + k], opacity);
  }
  return any;
}

/// Upright, in `n_channels`, channel by channel.
Image image_of(const Pixels& pixels, int64_t n_channels) {
  const auto place = placement_of(pixels);
  Image image{.shape = {.channels = n_channels, .height = place.height, .width = place.width}, .pixels = {}};
  const int64_t n = pixels.height * pixels.width, from_channels = pixels.n_channels;
  image.pixels.resize(static_cast<size_t>(n_channels * n));
  const auto fill = [&](uint8_t* plane, auto value_of) {
    const uint8_t* from = pixels.values.data();
    for (int64_t y = 0; y < pixels.height; ++y) {
      uint8_t* to = plane + place.first + y * place.down;
      for (int64_t x = 0; x < pixels.width; ++x, from += from_channels, to += place.across)
        *to = value_of(from);
    }
  };
  for (int64_t c = 0; c < n_channels; ++c) {
    uint8_t* const plane = image.pixels.data() + c * n;
    if (from_channels == 1) {
      fill(plane, [](const uint8_t* pixel) { return *pixel; });
    } else if (n_channels == 1) {
      fill(plane, [](const uint8_t* pixel) { return luma(pixel[0], pixel[1], pixel[2]); });
    } else {
      fill(plane, [c](const uint8_t* pixel) { return pixel[c]; });
    }
  }
  return image;
}

Pixels decode(std::string_view bytes, const DecodingLimits& limits) {
  if (bytes.empty()) throw DecodingProblem{"the file is empty"};
  if (is_png(bytes)) return decode_png(bytes, limits);
  if (is_jpeg(bytes)) return decode_jpeg(bytes, limits);
  if (is_webp(bytes)) return decode_webp(bytes, limits);
  throw DecodingProblem{"this is no PNG, JPEG or WebP image"};
}

}  // namespace

void check_size(int64_t height, int64_t width, const DecodingLimits& limits) {
  if (height * width > limits.pixels)
    throw DecodingProblem{
        fmt::format("the image has more than {} million pixels: make it smaller", limits.pixels >> 20)};
}

Image decode_image(std::string_view bytes, std::string_view name, int64_t n_channels,
                   const DecodingLimits& limits, Transparency transparency) {
  try {
    auto pixels = decode(bytes, limits);
    const bool has_transparency = transparency == Transparency::white && put_on_white(pixels);
    Image image = image_of(pixels, n_channels);
    image.has_transparency = has_transparency;
    return image;
  } catch (const DecodingProblem& problem) {
    throw DataError(fmt::format("{}: {}", excerpt(name, 300), problem.text));
  }
}

Image read_image(const std::filesystem::path& path, Follow follow, int64_t n_channels,
                 Transparency transparency) {
  return decode_image(read_file(path, follow, kMostImageBytes), path.string(), n_channels, {}, transparency);
}

Image read_of_set(int64_t index, int64_t n, const std::function<Image(int64_t)>& read) {
  try {
    return read(index);
  } catch (const DataError&) {
    std::vector<std::string> problems(static_cast<size_t>(n));
    at::parallel_for(0, n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        try {
          read(i);
        } catch (const DataError& error) {
          problems[static_cast<size_t>(i)] = error.what();
        }
      }
    });
    std::erase(problems, "");
    if (problems.size() < 2) throw;
    throw DataError(fmt::format("{} of {} images cannot be read: {}; {}{}", problems.size(), n, problems[0],
                                problems[1], problems.size() > 2 ? "; …" : ""));
  }
}

bool is_image_name(const std::filesystem::path& path) {
  return has_extension(path, {".png", ".jpg", ".jpeg", ".webp"});
}

std::string encode_png(const Image& image) {
  const auto& [channels, height, width] = image.shape;
  const int64_t n = height * width;
  Pixels pixels{.n_channels = channels, .height = height, .width = width};
  pixels.values.resize(image.pixels.size());
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < n; ++i)
      pixels.values[static_cast<size_t>(i * channels + c)] = image.pixels[static_cast<size_t>(c * n + i)];
  return encode_png(pixels);
}

}  // namespace zoo
