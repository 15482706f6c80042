// What this project wants of fmt, in a program that only has to be linked.
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

int main() {  // NOLINT(bugprone-exception-escape): nobody runs it
  const int ids[] = {1, 2};
  const auto text = fmt::format("{:.3f} {:<10} {}", 1.5, "x", fmt::join(ids, ", "));
  const auto time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t{0}));
  return text.empty() || time.empty();
}
