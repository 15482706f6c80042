#pragma once
// Pictures in requests.

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/images/image_file.h"
#include "serving/api/api_error.h"
#include "serving/api/api_limits.h"
#include "serving/api/memory_file.h"

namespace zoo {

/// The bytes of a picture in a request, which can be decoded and is not too large. Throws ApiError.
inline std::string checked_picture(std::string_view text, const ApiLimits& limits) {
  auto bytes = picture_bytes(text);
  try {
    decode_image(bytes, "the picture", 3, {.pixels = limits.most_image_pixels});
  } catch (const DataError& error) {
    throw ApiError(400, error.what(), "images");
  }
  return bytes;
}

/// use(files), where the files have these contents.
template <class Use>
auto with_files(const std::vector<std::string>& contents, const Use& use) {
  std::vector<MemoryFile> files;
  std::vector<std::string> paths;
  for (const auto& content : contents) {
    files.emplace_back(content);
    paths.push_back(files.back().path());
  }
  return use(paths);
}

}  // namespace zoo
