#include "apps/console/token_ids.h"

#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

int64_t parse_token_id(std::string_view word, std::string_view where) {
  int64_t id = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc() || rest != word.data() + word.size())
    throw UsageError(fmt::format("{}'{}' is not a token id; write them as 1,2,3", where, excerpt(word, 40)));
  return id;
}

}  // namespace zoo
