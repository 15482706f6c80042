#include "data/images/decoders.h"

#ifdef ZOO_WEBP
#include <webp/decode.h>

#include <algorithm>

#include "data/images/exif.h"
#endif

namespace zoo {

bool is_webp(std::string_view bytes) {
  return bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP";
}

#ifdef ZOO_WEBP

bool reads_webp() { return true; }

namespace {

/// The content of the chunk EXIF, which libwebp does not give; empty if there is none.
std::string_view exif_of_webp(std::string_view bytes) {
  constexpr size_t header = 12, name_and_length = 8;
  for (size_t at = header; at + name_and_length <= bytes.size();) {
    size_t length = 0;
    for (size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[at + 4 + i]);
    const auto name = bytes.substr(at, 4);
    at += name_and_length;
    if (name == "EXIF") return bytes.substr(at, length);
    at += length + length % 2;  // chunks begin at even places
  }
  return {};
}

}  // namespace

Pixels decode_webp(std::string_view bytes, const DecodingLimits& limits) {
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK)
    throw DecodingProblem{"the image is damaged or truncated"};
  if (features.has_animation != 0) throw DecodingProblem{"the image is an animation: save one picture of it"};
  check_size(features.height, features.width, limits);
  Pixels pixels{
      .n_channels = features.has_alpha != 0 ? 4 : 3, .height = features.height, .width = features.width};
  pixels.values.resize(static_cast<size_t>(pixels.n_channels * pixels.height * pixels.width));
  const auto decode = features.has_alpha != 0 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  const auto row_size = static_cast<int>(pixels.n_channels * pixels.width);
  if (decode(data, bytes.size(), pixels.values.data(), pixels.values.size(), row_size) == nullptr)
    throw DecodingProblem{"the image is damaged or truncated"};
  pixels.orientation = exif_orientation(exif_of_webp(bytes));
  return pixels;
}

#else

bool reads_webp() { return false; }

Pixels decode_webp(std::string_view, const DecodingLimits&) {
  throw DecodingProblem{"this program was built without libwebp: save the image as PNG or JPEG"};
}

#endif

}  // namespace zoo
