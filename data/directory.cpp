#include "data/directory.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

std::vector<std::filesystem::path> names_in(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::vector<fs::path> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename());
  if (error) throw DataError(fmt::format("cannot read '{}': {}", directory.string(), error.message()));
  std::ranges::sort(names);
  return names;
}

}  // namespace zoo
