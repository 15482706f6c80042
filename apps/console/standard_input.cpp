#include "apps/console/standard_input.h"

#include <array>
#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text_files.h"

namespace zoo {

std::string standard_input(std::string_view advice) {
  std::string content;
  for (std::array<char, 1 << 16> part; std::cin.read(part.data(), part.size()), std::cin.gcount() > 0;) {
    content.append(part.data(), static_cast<size_t>(std::cin.gcount()));
    if (std::ssize(content) > kMostInputBytes)
      throw DataError(
          fmt::format("standard input has more than {} MiB, the most that is read", kMostInputBytes >> 20));
  }
  if (content.find_first_not_of("\r\n") == content.npos)
    throw DataError(fmt::format("standard input is empty: {}", advice));
  return content;
}

}  // namespace zoo
