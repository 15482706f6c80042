#include "apps/arguments/standard_input.h"

#include <iostream>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text_files.h"

namespace zoo {

std::string standard_input(std::string_view advice) {
  std::string content{std::istreambuf_iterator<char>(std::cin), {}};
  if (without_blanks_at_end(content).empty())
    throw DataError(fmt::format("standard input is empty: {}", advice));
  return content;
}

}  // namespace zoo
