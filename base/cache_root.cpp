#include "base/cache_root.h"

#include <cstdlib>

namespace zoo {

std::filesystem::path cache_root() {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const auto path = variable("ZOO_CACHE"); !path.empty()) return path;
  if (const auto path = variable("XDG_CACHE_HOME"); !path.empty()) return path / "transformer-zoo";
  if (const auto path = variable("HOME"); !path.empty()) return path / ".cache" / "transformer-zoo";
  return {};
}

}  // namespace zoo
