#include "io/config/find_config.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "io/file_kind.h"
#include "io/files.h"

/// Where the library is installed: TransformerZooConfig.cmake compiles it into programs that use the library.
extern "C" [[gnu::weak]] const char* zoo_installed_configs();

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Whether there is something to read. A file that may not be read counts, so that reading it says why.
bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::status(path, ignored).type() != fs::file_type::not_found && !has_directory(path);
}

/// Whether `name` may stand for NAME.yaml.
bool lacks_ending(const fs::path& name) {
  return name.has_filename() && !has_extension(name, {".yaml", ".yml"});
}

/// `name`, or `name` with .yaml at its end.
std::optional<fs::path> file_at(const fs::path& name) {
  const auto path = name.lexically_normal();
  if (is_file(path)) return path;
  if (!lacks_ending(name)) return std::nullopt;
  auto with_ending = path;
  with_ending += ".yaml";
  return is_file(with_ending) ? std::optional(with_ending) : std::nullopt;
}

std::vector<fs::path> subfolders(const fs::path& directory) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (has_directory(at->path())) folders.push_back(at->path());
  std::ranges::sort(folders);
  return folders;
}

/// `name` as a path below the shipped configurations; empty if it cannot be one.
fs::path shipped_name(const fs::path& name) {
  if (name.empty() || name.is_absolute()) return {};
  const auto first = *name.begin();
  if (first == "." || first == "..") return {};
  return first == "configs" ? name.lexically_relative("configs") : name;
}

std::optional<fs::path> shipped_file(const fs::path& configs, const fs::path& name) {
  if (name.empty()) return std::nullopt;
  if (auto found = file_at(configs / name)) return found;
  if (name.has_parent_path()) return std::nullopt;
  for (const auto& folder : subfolders(configs))
    if (auto found = file_at(folder / name)) return found;
  return std::nullopt;
}

std::vector<fs::path> files_in(const fs::path& configs) {
  std::vector<fs::path> files;
  for (const auto& folder : subfolders(configs)) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
      if (has_extension(at->path(), {".yaml"})) files.push_back(at->path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> shipped_names(const fs::path& configs) {
  std::vector<std::string> names;
  for (const auto& file : files_in(configs)) names.push_back(file.stem().string());
  std::ranges::sort(names);
  return names;
}

[[noreturn]] void fail(const ConfigPath& path, const std::optional<fs::path>& configs) {
  const fs::path name(path.text);
  const auto shipped = shipped_name(name);
  std::string looked = places_of(path);
  if (!shipped.empty()) {
    looked += configs ? fmt::format(", then in {}", configs->string())
                      : ", and found no folder of shipped configurations, which ZOO_CONFIGS can name";
  }
  std::string hint;
  if (configs && !shipped.empty() && !shipped.has_parent_path()) {
    const auto word = lacks_ending(shipped) ? shipped.string() : shipped.stem().string();
    if (const auto near = nearest(word, shipped_names(*configs)))
      hint = fmt::format("; did you mean '{}'?", *near);
  }
  throw ConfigError(
      fmt::format("cannot read '{}': No such file or directory{}{}", excerpt(path.text, 300), looked, hint));
}

}  // namespace

std::optional<fs::path> shipped_configs() {
  if (const char* const named = std::getenv("ZOO_CONFIGS"); named != nullptr && *named != '\0')
    return has_directory(named) ? std::optional<fs::path>(named) : std::nullopt;
  const fs::path place = fs::path("share") / "transformer-zoo" / "configs";
  const auto folder = this_program().parent_path();
  const fs::path installed = zoo_installed_configs != nullptr ? zoo_installed_configs() : "";
  for (const auto& candidate : {folder.parent_path() / place, folder / place, installed})
    if (has_directory(candidate)) return candidate;
  return std::nullopt;
}

std::vector<fs::path> list_shipped_configs() {
  const auto configs = shipped_configs();
  return configs ? files_in(*configs) : std::vector<fs::path>();
}

fs::path find_config(const ConfigPath& name) {
  const auto places = candidates(name);
  for (const auto& place : places)
    if (auto found = file_at(place)) return *found;
  const auto configs = shipped_configs();
  if (configs) {
    if (auto found = shipped_file(*configs, shipped_name(name.text))) return *found;
  }
  if (std::ranges::any_of(places, has_directory))
    throw ConfigError(fmt::format("cannot read '{}': Is a directory", name.text));
  fail(name, configs);
}

}  // namespace zoo
