#include "apps/console/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.h"
#include "io/text_width.h"

namespace zoo {

std::optional<size_t> columns_of_output() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return std::nullopt;
  return size.ws_col;
}

std::string first_columns(std::string_view line, size_t columns) {
  if (width_of(line) <= columns) return std::string(line);
  return std::string(line.substr(0, byte_of_code_point(line, columns - 1))) + "…";
}

}  // namespace zoo
