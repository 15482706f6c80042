#pragma once
// Results that take long to compute, kept in files.

#include <filesystem>

#include "pages/json.h"

namespace zoo {

/// What a kept value must be, so that those who use it need not ask.
enum class KeptKind {
  numbers,  // an object of numbers and nulls
  object,
  list,
  number,
};

/// The value that keep() wrote; null where there is no such file, where it is damaged or of another kind, or
/// where its value belongs to another `key`. Throws DataError where a link or a pipe is there.
Json read_kept(const std::filesystem::path& path, const Json& key, KeptKind kind);

/// Writes a value together with its `key`, which holds everything that it depends on. The directory
/// exists already. Throws SystemError.
void keep(const std::filesystem::path& path, const Json& key, const Json& value);

/// The kept value of a file; if there is none, the result of `make`, which is then kept.
template <class Make>
Json kept(const std::filesystem::path& path, const Json& key, KeptKind kind, const Make& make) {
  Json value = read_kept(path, key, kind);
  if (value.is_null()) keep(path, key, value = make());
  return value;
}

}  // namespace zoo
