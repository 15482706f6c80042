#include "serving/api/insight/shown_texts.h"

#include <fmt/format.h>

#include "serving/api/api_error.h"
#include "serving/api/texts_or_ids.h"

namespace zoo {
namespace {

constexpr size_t kMostShownTokens = 256;

}  // namespace

void require_shown_length(const ServedModel& model, const std::string& text, const char* key) {
  constexpr size_t bytes_of_token = 64;
  if (text.size() > kMostShownTokens * bytes_of_token)
    throw ApiError(400, fmt::format("{} has {} bytes: shorten it", key, text.size()), key);
  const size_t n = model.tokenizer().encode(text).size();
  if (n > kMostShownTokens)
    throw ApiError(
        400, fmt::format("{} has {} tokens, and at most {} can be shown", key, n, kMostShownTokens), key);
  require_length(n, *model.card().max_length, key);
}

void require_shown_tokens(size_t n_tokens) {
  if (n_tokens > 2 * kMostShownTokens)
    throw ApiError(400, fmt::format("the text and the answer have {} tokens, and at most {} can be shown: "
                                    "give a target that is shorter",
                                    n_tokens, 2 * kMostShownTokens));
}

}  // namespace zoo
