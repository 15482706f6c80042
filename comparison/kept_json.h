#pragma once
// Results that take long to compute, kept in files.

#include <filesystem>

#include "comparison/report/json.h"

namespace zoo {

/// The value that keep() wrote; null where there is no such file, where it is damaged, or where its value
/// belongs to another `key`. Throws DataError where a link or a pipe is there.
Json read_kept(const std::filesystem::path& path, const Json& key);

/// Writes a value together with its `key`, which holds everything that it depends on. The directory
/// exists already. Throws SystemError.
void keep(const std::filesystem::path& path, const Json& key, const Json& value);

/// The kept value of a file; if there is none, the result of `make`, which is then kept.
template <class Make>
Json kept(const std::filesystem::path& path, const Json& key, const Make& make) {
  Json value = read_kept(path, key);
  if (value.is_null()) keep(path, key, value = make());
  return value;
}

}  // namespace zoo
