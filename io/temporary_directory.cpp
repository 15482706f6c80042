#include "io/temporary_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

TemporaryDirectory::TemporaryDirectory(std::string_view name) {
  const auto parent = std::filesystem::temp_directory_path();
  std::string pattern = (parent / fmt::format("{}-XXXXXX", name)).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw SystemError(fmt::format("cannot make a directory in '{}': {}", parent.string(),
                                  std::generic_category().message(errno)));
  }
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace zoo
