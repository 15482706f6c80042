// Uses the parts of fmt that this project needs. The program only has to link.
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

int main() {  // NOLINT(bugprone-exception-escape): it is never run
  const int ids[] = {1, 2};
  const auto text = fmt::format("{:.3f} {:<10} {}", 1.5, "x", fmt::join(ids, ", "));
  const auto time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t{0}));
  return text.empty() || time.empty();
}
