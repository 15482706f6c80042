#include "apps/console/token_ids.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

std::vector<std::string> parts_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    auto part = text.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

int64_t parse_token_id(std::string_view word, std::string_view where) {
  int64_t id = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || rest != word.data() + word.size())
    throw UsageError(fmt::format("{}'{}' is not a token id; write them as 1,2,3", where, excerpt(word, 40)));
  return id;
}

}  // namespace zoo
