#pragma once
// The switch of mistakes that scripts/plant.py plants. The program itself never includes it.

#include <cstdlib>
#include <string_view>

namespace zoo {

/// Whether the environment variable ZOO_MISTAKE names this number.
inline bool planted(int number) {
  static const char* const chosen = std::getenv("ZOO_MISTAKE");
  static const int wanted = chosen ? std::atoi(chosen) : -1;
  return number == wanted;
}

}  // namespace zoo
