#pragma once
// Pictures in requests.

#include <string>

#include "base/error.h"
#include "data/images/image_file.h"
#include "serving/api/api_error.h"
#include "serving/api/api_limits.h"
#include "serving/api/memory_file.h"

namespace zoo {

/// The bytes of a picture in a request, which can be decoded and is not too large. Throws ApiError, with the
/// key of `kind`: kPicture, or kPictures where a request may have several.
inline std::string checked_picture(std::string_view text, const FileKind& kind, const ApiLimits& limits) {
  auto bytes = bytes_of_file(text, kind);
  try {
    decode_image(bytes, "the picture", 3, {.pixels = limits.most_image_pixels});
  } catch (const DataError& error) {
    throw ApiError(400, error.what(), kind.key);
  }
  return bytes;
}

}  // namespace zoo
