#include <png.h>

#include <cstddef>

#include <fmt/format.h>

#include "base/error.h"
#include "data/images/decoders.h"
#include "data/images/exif.h"

namespace zoo {
namespace {

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1A\n";

/// Frees what libpng holds.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;

  png_image& get() { return image_; }
  [[noreturn]] void fail() const {
    throw DecodingProblem{fmt::format("the image is damaged or truncated ({})", image_.message)};
  }

 private:
  png_image image_ = {};
};

/// The content of the chunk eXIf, which libpng's simple interface does not give; empty if there is none.
std::string_view exif_of_png(std::string_view bytes) {
  constexpr size_t length_and_name = 8, checksum = 4;
  for (size_t at = kPngSignature.size(); at + length_and_name <= bytes.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
    const auto name = bytes.substr(at + 4, 4);
    at += length_and_name;
    if (name == "eXIf") return bytes.substr(at, length);
    at += length + checksum;
  }
  return {};
}

}  // namespace

bool is_png(std::string_view bytes) { return bytes.starts_with(kPngSignature); }

Pixels decode_png(std::string_view bytes, const DecodingLimits& limits) {
  PngImage png;
  auto& image = png.get();
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) png.fail();
  const int64_t height = image.height, width = image.width;
  check_size(height, width, limits);
  const bool has_opacity = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0,
             has_colours = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  Pixels pixels{.n_channels = has_opacity ? 4 : has_colours ? 3 : 1, .height = height, .width = width};
  image.format = has_opacity ? PNG_FORMAT_RGBA : has_colours ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  pixels.values.resize(static_cast<size_t>(pixels.n_channels * height * width));
  if (!png_image_finish_read(&image, nullptr, pixels.values.data(), 0, nullptr)) png.fail();
  pixels.orientation = exif_orientation(exif_of_png(bytes));
  return pixels;
}

std::string encode_png(const Pixels& pixels) {
  PngImage png;
  auto& to = png.get();
  to.width = static_cast<png_uint_32>(pixels.width), to.height = static_cast<png_uint_32>(pixels.height);
  to.format = pixels.n_channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const bool is_measured =
      png_image_write_to_memory(&to, nullptr, &size, 0, pixels.values.data(), 0, nullptr) != 0;
  std::string content(size, '\0');
  if (!is_measured ||
      !png_image_write_to_memory(&to, content.data(), &size, 0, pixels.values.data(), 0, nullptr))
    throw SystemError(fmt::format("libpng cannot write an image: {}", to.message));
  content.resize(size);
  return content;
}

}  // namespace zoo
