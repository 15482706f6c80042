#include "data/images/image_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"

namespace zoo {
namespace {

/// The memory of one decoding. A damaged file may ask for any amount, so stb_image gets it from a budget.
class DecodingMemory {
 public:
  DecodingMemory() { left_ = kMostDecodingBytes; }
  ~DecodingMemory() { left_ = 0; }
  DecodingMemory(const DecodingMemory&) = delete;
  DecodingMemory& operator=(const DecodingMemory&) = delete;

  static void* take(size_t size) {
    if (size > static_cast<size_t>(left_)) return nullptr;
    auto* const block = static_cast<Block*>(std::malloc(sizeof(Block) + size));  // NOLINT(*-no-malloc)
    if (!block) return nullptr;
    left_ -= static_cast<int64_t>(size);
    block->size = size;
    return block + 1;
  }
  static void give_back(void* memory) {
    if (!memory) return;
    auto* const block = static_cast<Block*>(memory) - 1;
    left_ += static_cast<int64_t>(block->size);
    std::free(block);  // NOLINT(*-no-malloc)
  }
  static void* resize(void* memory, size_t old_size, size_t size) {
    void* const result = take(size);
    if (!result) return nullptr;
    if (memory) std::memcpy(result, memory, std::min(old_size, size));
    give_back(memory);
    return result;
  }

 private:
  /// In front of the memory that was asked for.
  union Block {
    size_t size;
    std::max_align_t alignment;
  };
  static thread_local int64_t left_;
};

thread_local int64_t DecodingMemory::left_ = 0;

}  // namespace
}  // namespace zoo

#define STBI_MALLOC(size) zoo::DecodingMemory::take(size)
#define STBI_REALLOC_SIZED(memory, old_size, size) zoo::DecodingMemory::resize(memory, old_size, size)
#define STBI_FREE(memory) zoo::DecodingMemory::give_back(memory)
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace zoo {
namespace {

/// stb_image reads a truncated JPEG to the end and leaves the rest of the picture grey. A whole one has the
/// mark of its end behind the mark of its last scan.
bool is_truncated_jpeg(std::string_view bytes) {
  constexpr std::string_view start_of_image = "\xFF\xD8", start_of_scan = "\xFF\xDA",
                             end_of_image = "\xFF\xD9";
  if (!bytes.starts_with(start_of_image)) return false;
  const size_t end = bytes.rfind(end_of_image), scan = bytes.rfind(start_of_scan);
  return end == bytes.npos || scan == bytes.npos || end < scan;
}

/// Pixels that the header of a PNG file says; 0 for another file. (stb_image does not tell why it refuses a
/// large one.)
int64_t pixels_of_png(std::string_view bytes) {
  constexpr std::string_view start = "\x89PNG\r\n\x1A\n";
  constexpr size_t width_at = 16, height_at = 20, header_size = 24;
  if (!bytes.starts_with(start) || bytes.size() < header_size) return 0;
  const auto number_at = [&](size_t at) {
    int64_t number = 0;
    for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<uint8_t>(bytes[at + i]);
    return number & 0x7FFFFFFF;
  };
  return number_at(width_at) * number_at(height_at);
}

/// From pixel by pixel to channel by channel, and back.
std::vector<uint8_t> planes_of(const uint8_t* pixels, const ImageShape& shape) {
  const int64_t n = shape.height * shape.width;
  std::vector<uint8_t> planes(static_cast<size_t>(shape.channels * n));
  for (int64_t c = 0; c < shape.channels; ++c)
    for (int64_t i = 0; i < n; ++i) planes[static_cast<size_t>(c * n + i)] = pixels[i * shape.channels + c];
  return planes;
}

}  // namespace

Image decode_image(std::string_view bytes, std::string_view name, int64_t n_channels) {
  constexpr size_t most_bytes = size_t{1} << 30;
  const auto fail = [&](std::string_view problem) {
    throw DataError(fmt::format("{}: {}", excerpt(name, 300), problem));
  };
  if (bytes.empty()) fail("the file is empty");
  if (bytes.size() > most_bytes) fail("the file is too large for an image: more than 1 GiB");
  const DecodingMemory memory;
  const auto* const data = reinterpret_cast<const stbi_uc*>(bytes.data());
  const int size = static_cast<int>(bytes.size());
  int width = 0, height = 0, n_channels_of_file = 0;
  const bool is_known = stbi_info_from_memory(data, size, &width, &height, &n_channels_of_file) != 0;
  if (std::max(int64_t{width} * height, pixels_of_png(bytes)) > kMostPixels)
    fail(fmt::format("the image has more than {} million pixels: make it smaller", kMostPixels >> 20));
  if (!is_known) fail("this is no PNG or JPEG image, or its beginning is damaged");
  if (is_truncated_jpeg(bytes)) fail("the image is truncated: its end is missing");
  const std::unique_ptr<stbi_uc, decltype(&stbi_image_free)> pixels(
      stbi_load_from_memory(data, size, &width, &height, &n_channels_of_file, static_cast<int>(n_channels)),
      stbi_image_free);
  if (!pixels) fail(fmt::format("the image is damaged or truncated ({})", stbi_failure_reason()));
  const ImageShape shape{.channels = n_channels, .height = height, .width = width};
  return {.shape = shape, .pixels = planes_of(pixels.get(), shape)};
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
  std::string content;
  const auto append = [](void* to, void* data, int size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(data), static_cast<size_t>(size));
  };
  stbi_write_png_to_func(append, &content, static_cast<int>(width), static_cast<int>(height),
                         static_cast<int>(channels), pixels.data(), static_cast<int>(width * channels));
  return content;
}

}  // namespace zoo
