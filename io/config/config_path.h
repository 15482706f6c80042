#pragma once
// Paths that a configuration names, and the places in which they are looked for.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

/// A path as a configuration names it. A relative path is looked for in three places, in this order: beside
/// the file that names it, in the working directory, in the data root.
struct ConfigPath {
  ConfigPath() = default;
  ConfigPath(std::string path) : text(std::move(path)) {}
  ConfigPath(const char* path) : text(path) {}
  ConfigPath(std::string path, std::optional<std::filesystem::path> directory)
      : text(std::move(path)), beside(std::move(directory)) {}
  /// The path with `suffix` added to its text.
  ConfigPath operator+(const std::string& suffix) const { return {text + suffix, beside}; }
  bool operator==(const ConfigPath&) const = default;

  std::string text;  // as written
  /// The directory of the file that names the path. None for a path from the command line or from a program,
  /// which is not looked for beside a file. Empty: the working directory.
  std::optional<std::filesystem::path> beside;
};

/// $ZOO_DATA, else ./datasets.
std::filesystem::path data_root();

/// The paths at which `path` is looked for, in this order; only one if it is absolute.
std::vector<std::filesystem::path> candidates(const ConfigPath& path);

/// "; looked for it beside the configuration (/a), in the working directory (/b) and in the data root (/c;
/// $ZOO_DATA, else ./datasets)": the end of a message that a path leads nowhere. Empty for an absolute path.
std::string places_of(const ConfigPath& path);

/// Tells whether there is what a path names.
using IsThere = std::function<bool(const std::filesystem::path&)>;

/// The first of the candidates for which `is_there` holds.
std::optional<std::filesystem::path> find_path(const ConfigPath& path, const IsThere& is_there);

/// A path that leads to the same file from any working directory and in any configuration: an absolute path.
/// A path that is found below an absolute $ZOO_DATA keeps its text, so that it is also found on machines that
/// have their data elsewhere. So does a path that is not found.
ConfigPath pinned(const ConfigPath& path, const IsThere& is_there);

/// Whether `path` may have been pinned as `pin`, also if what it names is no longer there.
bool may_be(const ConfigPath& path, const ConfigPath& pin);

}  // namespace zoo
