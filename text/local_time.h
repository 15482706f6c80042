#pragma once

#include <ctime>

namespace zoo {

/// The time now, here.
inline std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm result{};
  localtime_r(&now, &result);
  return result;
}

}  // namespace zoo
