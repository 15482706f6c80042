#pragma once
// What takes long to find out, kept in files.

#include <filesystem>

#include "comparison/report/json.h"

namespace zoo {

/// The value that keep() wrote; null where there is no such file, where it is not whole, or where its value
/// belongs to another `key`.
Json read_kept(const std::filesystem::path& path, const Json& key);

/// Writes a value, and with it all that it depends on. Throws SystemError.
void keep(const std::filesystem::path& path, const Json& key, const Json& value);

/// The value of a file, or what `make` returns, which is then written.
template <class Make>
Json kept(const std::filesystem::path& path, const Json& key, const Make& make) {
  Json value = read_kept(path, key);
  if (value.is_null()) keep(path, key, value = make());
  return value;
}

}  // namespace zoo
