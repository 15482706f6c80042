#include "io/config/config_path.h"

#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "base/text.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  const fs::path full = fs::absolute(path.empty() ? fs::path(".") : path, error);
  if (error) return path;
  // "a/../b" is not "b" if a is a link to a directory elsewhere.
  const fs::path normal = full.lexically_normal();
  const bool same = fs::equivalent(normal.parent_path(), full.parent_path(), error);
  return same && !error ? normal : full;
}

/// For messages: without a slash or a dot at the end.
std::string shown(const fs::path& directory) {
  fs::path full = absolute_path(directory);
  if (full.filename() == ".") full = full.parent_path();
  return excerpt((full.has_filename() ? full : full.parent_path()).string(), 300);
}

}  // namespace

fs::path data_root() {
  const char* root = std::getenv("ZOO_DATA");
  return root != nullptr && *root != '\0' ? root : "datasets";
}

std::vector<fs::path> candidates(const ConfigPath& path) {
  const fs::path given(path.text);
  if (given.is_absolute()) return {given};
  std::vector<fs::path> places;
  if (path.beside && !path.beside->empty()) places.push_back(*path.beside / given);
  places.push_back(given);
  places.push_back(data_root() / given);
  return places;
}

std::string places_of(const ConfigPath& path) {
  if (fs::path(path.text).is_absolute()) return {};
  const auto beside =
      path.beside ? fmt::format("beside the configuration ({}), ", shown(*path.beside)) : std::string();
  return fmt::format(
      "; looked for it {}in the working directory ({}) and in the data root ({}; $ZOO_DATA, else ./datasets)",
      beside, shown({}), shown(data_root()));
}

std::optional<fs::path> find_path(const ConfigPath& path, const IsThere& is_there) {
  if (path.text.empty()) return std::nullopt;
  for (const auto& candidate : candidates(path)) {
    if (is_there(candidate)) return candidate;
  }
  return std::nullopt;
}

ConfigPath pinned(const ConfigPath& path, const IsThere& is_there) {
  const fs::path given(path.text);
  if (given.is_absolute()) return path;
  const auto found = find_path(path, is_there);
  if (!found) return path;
  const auto root = data_root();
  return root.is_absolute() && *found == root / given ? path : ConfigPath(absolute_path(*found).string());
}

bool may_be(const ConfigPath& path, const ConfigPath& pin) {
  if (path.text == pin.text) return true;
  for (const auto& candidate : candidates(path)) {
    if (absolute_path(candidate) == fs::path(pin.text)) return true;
  }
  return false;
}

}  // namespace zoo
