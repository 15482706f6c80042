#include "serving/api/json_answer.h"

#include <chrono>
#include <random>

#include <fmt/format.h>

namespace zoo {

std::string new_id(std::string_view prefix) {
  std::random_device source;
  return fmt::format("{}{:08x}{:08x}{:08x}{:08x}", prefix, source(), source(), source(), source());
}

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace zoo
