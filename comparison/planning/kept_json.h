#pragma once
// Results that take long to compute, kept in files.

#include <filesystem>

#include "pages/json.h"

namespace zoo {

/// The value that keep() wrote; null where there is no such file, where it is damaged, or where its value
/// belongs to another `key`. Throws DataError where a link or a pipe is there.
Json read_kept(const std::filesystem::path& path, const Json& key);

/// Writes a value together with its `key`, which holds everything that it depends on. The directory
/// exists already. Throws SystemError.
void keep(const std::filesystem::path& path, const Json& key, const Json& value);

/// The kept value of a file as `read` makes it from JSON. Where `read` returns nothing, as for null, the
/// result of `make` is kept and read.
template <class Read, class Make>
auto kept(const std::filesystem::path& path, const Json& key, const Read& read, const Make& make) {
  auto value = read(read_kept(path, key));
  if (value) return value;
  const Json made = make();
  keep(path, key, made);
  return read(made);
}

}  // namespace zoo
