#include "data/directory.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::string kind_of(const fs::path& path) {
  if (!has_file(path)) return "no file";
  return path.has_extension() ? path.extension().string() : "no extension";
}

void add_files_of(const fs::path& directory, const std::function<bool(const fs::path&)>& is_of_kind,
                  FileListing& listing) {
  for (const auto& name : names_in(directory)) {
    if (name.string().starts_with('.')) continue;
    const auto path = directory / name;
    std::error_code ignored;
    if (fs::is_directory(fs::symlink_status(path, ignored))) {
      add_files_of(path, is_of_kind, listing);
    } else if (is_of_kind(name) && has_file(path)) {
      listing.files.push_back(path);
    } else {
      ++listing.skipped[kind_of(path)];
    }
  }
}

}  // namespace

std::vector<std::filesystem::path> names_in(const std::filesystem::path& directory) {
  std::vector<fs::path> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename());
  if (error) throw DataError(fmt::format("cannot read '{}': {}", directory.string(), error.message()));
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> FileListing::skipped_text() const {
  if (skipped.empty()) return std::nullopt;
  int64_t n = 0;
  std::string kinds;
  for (const auto& [kind, count] : skipped) {
    n += count;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
  }
  return fmt::format("{} other file{} left out: {}", n, n == 1 ? "" : "s", kinds);
}

FileListing list_files(const fs::path& directory,
                       const std::function<bool(const fs::path& name)>& is_of_kind) {
  FileListing listing;
  add_files_of(directory, is_of_kind, listing);
  return listing;
}

}  // namespace zoo
