#include "comparison/planning/data_stamps.h"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "data/images/idx_file.h"
#include "data/splits.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The files that a name in a configuration may stand for.
std::vector<fs::path> places_of(const ConfigPath& name, const DataConfig& config) {
  std::vector<fs::path> places;
  for (const auto& one : {name, name + ("." + config.source), name + ("." + config.target)}) {
    try {
      places.push_back(data_file_or_directory(one));
      if (is_idx_name(places.back())) places.push_back(idx_labels_of(places.back()));
    } catch (const DataError&) {  // `name` is a file or a prefix, so some of these do not exist
    }
  }
  return places;
}

std::string stamp_of(const fs::path& file) {
  std::error_code ignored;
  return fmt::format("{} {} {}", file.string(), fs::file_size(file, ignored),
                     fs::last_write_time(file, ignored).time_since_epoch().count());
}

}  // namespace

Json evaluation_data_stamps(const DataConfig& config) {
  std::vector<ConfigPath> names = config.valid.empty() ? config.train : config.valid;
  const auto& choices = config.choices;
  const auto& shots_from = choices.shots_from.empty() ? config.train : choices.shots_from;
  names.insert(names.end(), choices.files.begin(), choices.files.end());
  if (choices.shots > 0) names.insert(names.end(), shots_from.begin(), shots_from.end());
  std::set<std::string> stamps;  // sorted: the order of a folder is nobody's
  for (const auto& name : names) {
    for (const auto& place : places_of(name, config)) {
      stamps.insert(stamp_of(place));
      std::error_code ignored;
      if (!fs::is_directory(place, ignored)) continue;
      for (fs::recursive_directory_iterator at(place, ignored), end; !ignored && at != end;
           at.increment(ignored))
        stamps.insert(stamp_of(at->path()));
    }
  }
  return stamps;
}

}  // namespace zoo
