#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <utility>

// The headers of libjpeg need those of C before them.
#include <jerror.h>
#include <jpeglib.h>

#include <fmt/format.h>

#include "data/images/decoders.h"
#include "data/images/exif.h"

namespace zoo {
namespace {

/// What libjpeg calls while it reads. These functions must not return after an error, so they jump.
struct JpegReading {
  jpeg_error_mgr errors;  // first, so that libjpeg's pointer to it is one to this
  jpeg_progress_mgr progress;
  std::jmp_buf place;
  std::array<char, JMSG_LENGTH_MAX> message;
  int most_scans;
  bool has_too_many_scans;
};

[[noreturn]] void jump_out(j_common_ptr info) {
  auto* const reading = reinterpret_cast<JpegReading*>(info->err);
  (*info->err->format_message)(info, reading->message.data());
  std::longjmp(reading->place, 1);
}

/// Where data are missing, libjpeg would only warn and go on with grey.
void jump_out_of_truncated_data(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
    jump_out(info);
}

/// A scan of a few bytes may take as long as one of megabytes.
void jump_out_of_many_scans(j_common_ptr info) {
  auto* const reading = reinterpret_cast<JpegReading*>(info->err);
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= reading->most_scans) return;
  reading->has_too_many_scans = true;
  std::longjmp(reading->place, 1);
}

/// Fewer for large images.
int most_scans(int64_t height, int64_t width, const DecodingLimits& limits) {
  return static_cast<int>(
      std::min(limits.scans, limits.scanned_pixels / std::max<int64_t>(1, height * width)));
}

int64_t orientation_of(const jpeg_decompress_struct& jpeg) {
  for (auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == JPEG_APP0 + 1 && data.starts_with("Exif")) return exif_orientation(data);
  }
  return 1;
}

/// Reads the whole image into `pixels`, four numbers for each pixel of a CMYK image. Returns false after an
/// error, whose message is in `reading`. No object with a destructor lives here, because of the jumps.
bool read_jpeg(std::string_view bytes, const DecodingLimits& limits, jpeg_decompress_struct& jpeg,
               JpegReading& reading, Pixels& pixels, bool& is_too_large) {
  if (setjmp(reading.place) != 0) return false;  // NOLINT(*-err52-cpp)
  constexpr unsigned longest_marker = 0xFFFF;
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &reading.progress;
  jpeg.mem->max_memory_to_use = static_cast<long>(limits.bytes);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(&jpeg, JPEG_APP0 + 1, longest_marker);
  jpeg_read_header(&jpeg, TRUE);
  is_too_large = int64_t{jpeg.image_height} * jpeg.image_width > limits.pixels;
  if (is_too_large) return false;
  reading.most_scans = most_scans(jpeg.image_height, jpeg.image_width, limits);
  pixels.orientation = orientation_of(jpeg);
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

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xFF\xD8\xFF"); }

Pixels decode_jpeg(std::string_view bytes, const DecodingLimits& limits) {
  jpeg_decompress_struct jpeg = {};
  JpegReading reading = {};
  jpeg.err = jpeg_std_error(&reading.errors);
  reading.errors.error_exit = jump_out;
  reading.errors.emit_message = jump_out_of_truncated_data;
  reading.progress.progress_monitor = jump_out_of_many_scans;
  Pixels pixels;
  bool is_too_large = false;
  const bool is_read = read_jpeg(bytes, limits, jpeg, reading, pixels, is_too_large);
  const bool is_inverted = jpeg.saw_Adobe_marker != 0;
  const int64_t height = jpeg.image_height, width = jpeg.image_width;
  jpeg_destroy_decompress(&jpeg);
  if (is_too_large) check_size(height, width, limits);
  if (reading.has_too_many_scans) {
    throw DecodingProblem{
        fmt::format("the image has more than {} scans, the most that are read for its size: "
                    "save it as another JPEG or as PNG",
                    reading.most_scans)};
  }
  if (!is_read)
    throw DecodingProblem{fmt::format("the image is damaged or truncated ({})", reading.message.data())};
  if (pixels.n_channels == 4) replace_cmyk(pixels, is_inverted);
  return pixels;
}

}  // namespace zoo
