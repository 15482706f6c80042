#include "serving/api/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/api/api_error.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {

MemoryFile::MemoryFile(std::string_view content)
    : file_(::memfd_create("request", MFD_CLOEXEC)), path_(fmt::format("/proc/self/fd/{}", file_.get())) {
  if (file_.get() < 0) throw SystemError("there is no memory for a file of a request");
  while (!content.empty()) {
    const auto n = ::write(file_.get(), content.data(), content.size());
    if (n <= 0) throw SystemError("there is no memory for a file of a request");
    content.remove_prefix(static_cast<size_t>(n));
  }
}

std::string bytes_of_file(std::string_view text, const FileKind& kind) {
  if (text.starts_with("data:")) {
    const size_t comma = text.find(',');
    if (comma == text.npos || !text.substr(0, comma).ends_with(";base64"))
      throw ApiError(
          400,
          fmt::format("a {} is written as data:{};base64,… or as base64 alone", kind.name, kind.media_type),
          kind.key);
    text.remove_prefix(comma + 1);
  }
  auto bytes = from_base64(text);
  if (!bytes) throw ApiError(400, fmt::format("a {} is not base64, with its padding", kind.name), kind.key);
  return *std::move(bytes);
}

}  // namespace zoo
