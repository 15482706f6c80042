#include "data/images/image_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <csetjmp>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// The headers of libjpeg need those of C before them.
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"

namespace zoo {
namespace {

/// Grey values, or red, green and blue, pixel by pixel. Any other layout of a file becomes the latter.
struct Pixels {
  int64_t n_channels = 0, height = 0, width = 0;
  std::vector<uint8_t> values;
};

/// Thrown within this file, and given the name of the image outside.
struct DecodingProblem {
  std::string text;
};

void check_size(int64_t height, int64_t width, const DecodingLimits& limits) {
  if (height * width > limits.pixels)
    throw DecodingProblem{
        fmt::format("the image has more than {} million pixels: make it smaller", limits.pixels >> 20)};
}

// ---- PNG -----------------------------------------------------------------------------------------------

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1A\n"); }

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

Pixels decode_png(std::string_view bytes, const DecodingLimits& limits) {
  constexpr int64_t with_alpha = 4;
  PngImage png;
  auto& image = png.get();
  if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) png.fail();
  const int64_t height = image.height, width = image.width;
  check_size(height, width, limits);
  image.format = PNG_FORMAT_RGBA;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  std::vector<uint8_t> rgba(static_cast<size_t>(height * width * with_alpha));
  if (!png_image_finish_read(&image, nullptr, rgba.data(), 0, nullptr)) png.fail();
  Pixels pixels{.n_channels = 3, .height = height, .width = width, .values = {}};
  pixels.values.reserve(static_cast<size_t>(height * width * 3));
  for (size_t i = 0; i < rgba.size(); i += with_alpha)
    pixels.values.insert(pixels.values.end(), {rgba[i], rgba[i + 1], rgba[i + 2]});
  return pixels;
}

// ---- JPEG ----------------------------------------------------------------------------------------------

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xFF\xD8\xFF"); }

/// libjpeg's handler of errors. It must not return, so it jumps.
struct JpegErrors {
  jpeg_error_mgr handler;  // first, so that libjpeg's pointer to it is one to this
  std::jmp_buf place;
  std::array<char, JMSG_LENGTH_MAX> message;
};

[[noreturn]] void jump_out(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  (*info->err->format_message)(info, errors->message.data());
  std::longjmp(errors->place, 1);
}

/// Where data are missing, libjpeg would only warn and go on with grey.
void jump_out_of_truncated_data(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
    jump_out(info);
}

/// Reads the whole image into `pixels`, four numbers for each pixel of a CMYK image. Returns false after an
/// error, whose message is in `errors`. No object with a destructor lives here, because of the jumps.
bool read_jpeg(std::string_view bytes, const DecodingLimits& limits, jpeg_decompress_struct& jpeg,
               JpegErrors& errors, Pixels& pixels, bool& is_too_large) {
  if (setjmp(errors.place) != 0) return false;  // NOLINT(*-err52-cpp)
  jpeg_create_decompress(&jpeg);
  jpeg.mem->max_memory_to_use = static_cast<long>(limits.bytes);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  is_too_large = int64_t{jpeg.image_height} * jpeg.image_width > limits.pixels;
  if (is_too_large) return false;
  const bool is_grey = jpeg.jpeg_color_space == JCS_GRAYSCALE;
  const bool has_black = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = is_grey ? JCS_GRAYSCALE : has_black ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&jpeg);
  pixels.n_channels = jpeg.output_components;
  pixels.height = jpeg.output_height, pixels.width = jpeg.output_width;
  const auto row_size = static_cast<size_t>(pixels.n_channels * pixels.width);
  pixels.values.resize(static_cast<size_t>(pixels.height) * row_size);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = pixels.values.data() + jpeg.output_scanline * row_size;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

/// Cyan, magenta, yellow and black as red, green and blue. Adobe's programs store them inverted.
void replace_cmyk(Pixels& pixels, bool is_inverted) {
  std::vector<uint8_t> rgb;
  rgb.reserve(pixels.values.size() / 4 * 3);
  for (size_t i = 0; i < pixels.values.size(); i += 4) {
    const auto light = [&](size_t k) {
      return is_inverted ? pixels.values[i + k] : 255 - pixels.values[i + k];
    };
    for (size_t k = 0; k < 3; ++k) rgb.push_back(static_cast<uint8_t>((light(k) * light(3) + 127) / 255));
  }
  pixels.n_channels = 3;
  pixels.values = std::move(rgb);
}

Pixels decode_jpeg(std::string_view bytes, const DecodingLimits& limits) {
  jpeg_decompress_struct jpeg = {};
  JpegErrors errors = {};
  jpeg.err = jpeg_std_error(&errors.handler);
  errors.handler.error_exit = jump_out;
  errors.handler.emit_message = jump_out_of_truncated_data;
  Pixels pixels;
  bool is_too_large = false;
  const bool is_read = read_jpeg(bytes, limits, jpeg, errors, pixels, is_too_large);
  const bool is_inverted = jpeg.saw_Adobe_marker != 0;
  jpeg_destroy_decompress(&jpeg);
  if (is_too_large) check_size(std::numeric_limits<int32_t>::max(), 1, limits);
  if (!is_read)
    throw DecodingProblem{fmt::format("the image is damaged or truncated ({})", errors.message.data())};
  if (pixels.n_channels == 4) replace_cmyk(pixels, is_inverted);
  return pixels;
}

/// In `n_channels`, channel by channel.
Image image_of(const Pixels& pixels, int64_t n_channels) {
  Image image{.shape = {.channels = n_channels, .height = pixels.height, .width = pixels.width},
              .pixels = {}};
  const int64_t n = pixels.height * pixels.width;
  image.pixels.resize(static_cast<size_t>(n_channels * n));
  const uint8_t* from = pixels.values.data();
  for (int64_t i = 0; i < n; ++i, from += pixels.n_channels) {
    const bool reduce = n_channels == 1 && pixels.n_channels == 3;
    for (int64_t c = 0; c < n_channels; ++c) {
      image.pixels[static_cast<size_t>(c * n + i)] =
          reduce ? luma(from[0], from[1], from[2]) : from[pixels.n_channels == 1 ? 0 : c];
    }
  }
  return image;
}

}  // namespace

Image decode_image(std::string_view bytes, std::string_view name, int64_t n_channels,
                   const DecodingLimits& limits) {
  try {
    if (bytes.empty()) throw DecodingProblem{"the file is empty"};
    if (is_png(bytes)) return image_of(decode_png(bytes, limits), n_channels);
    if (is_jpeg(bytes)) return image_of(decode_jpeg(bytes, limits), n_channels);
    throw DecodingProblem{"this is no PNG or JPEG image"};
  } catch (const DecodingProblem& problem) {
    throw DataError(fmt::format("{}: {}", excerpt(name, 300), problem.text));
  }
}

Image read_image(const std::filesystem::path& path, Follow follow, int64_t n_channels) {
  return decode_image(read_file(path, follow), path.string(), n_channels);
}

bool is_image_name(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

std::string encode_png(const Image& image) {
  const auto& [channels, height, width] = image.shape;
  const int64_t n = height * width;
  std::vector<uint8_t> pixels(image.pixels.size());
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < n; ++i)
      pixels[static_cast<size_t>(i * channels + c)] = image.pixels[static_cast<size_t>(c * n + i)];
  PngImage png;
  auto& to = png.get();
  to.width = static_cast<png_uint_32>(width), to.height = static_cast<png_uint_32>(height);
  to.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  const bool is_measured = png_image_write_to_memory(&to, nullptr, &size, 0, pixels.data(), 0, nullptr) != 0;
  std::string content(size, '\0');
  if (!is_measured || !png_image_write_to_memory(&to, content.data(), &size, 0, pixels.data(), 0, nullptr))
    throw SystemError(fmt::format("libpng cannot write an image: {}", to.message));
  content.resize(size);
  return content;
}

}  // namespace zoo
