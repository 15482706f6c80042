#include "generation/continuation_decoder.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace zoo {
namespace {

// More than enough for the bytes of one character, and for the word before a blank.
constexpr size_t kContextTokens = 8;

struct Match {
  size_t begin, end;
};

/// The stop text in `text` that is complete first, and the longest of several.
std::optional<Match> first_match(std::string_view text, const std::vector<std::string>& stops) {
  std::optional<Match> first;
  for (const auto& stop : stops) {
    const size_t begin = text.find(stop);
    if (begin == text.npos) continue;
    const Match match{begin, begin + stop.size()};
    if (!first || std::pair(match.end, match.begin) < std::pair(first->end, first->begin)) first = match;
  }
  return first;
}

/// The length of the longest end of `text` with which a stop text begins.
size_t begun(std::string_view text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const auto& stop : stops) {
    size_t n = std::min(text.size(), stop.size() - 1);
    while (n > longest && !text.ends_with(std::string_view(stop).substr(0, n))) --n;
    longest = std::max(longest, n);
  }
  return longest;
}

}  // namespace

std::string StopTexts::push(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  size_t n_sure = held_.size();
  if (const auto match = first_match(held_, texts_)) {
    found_ = true;
    n_sure = match->begin;
  } else {
    n_sure -= begun(held_, texts_);
  }
  std::string sure = held_.substr(0, n_sure);
  held_.erase(0, n_sure);
  return sure;
}

std::string StopTexts::finish() { return found_ ? std::string() : std::exchange(held_, {}); }

ContinuationDecoder::ContinuationDecoder(const Tokenizer& tokenizer, std::span<const int64_t> prompt,
                                         std::vector<std::string> stop, ShownTokens shown)
    : decoder_(tokenizer), stop_(std::move(stop)), shown_(std::move(shown)) {
  for (const int64_t id : prompt.last(std::min(prompt.size(), kContextTokens))) decoder_.push(id);
  decoder_.skip();
}

std::string ContinuationDecoder::push(int64_t id) {
  auto text = decoder_.push(id);
  if (const auto shown = std::ranges::find(shown_, id, &ShownToken::id); shown != shown_.end())
    text += shown->text;
  return stop_.push(text);
}

std::string ContinuationDecoder::finish() {
  std::string rest = stop_.push(decoder_.finish());
  return rest += stop_.finish();
}

}  // namespace zoo
