#include "generation/continuation_decoder.h"

#include <algorithm>
#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace zoo {
namespace {

/// By definition: the text before the stop text that is complete first, and the longest of several.
std::string cut_by_hand(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t begin = end;
    for (const auto& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) begin = std::min(begin, end - stop.size());
    }
    if (begin < end) return text.substr(0, begin);
  }
  return text;
}

TEST(StopTexts, CutWhereTheFirstIsCompleteWhateverThePiecesAre) {
  std::mt19937 random(5);
  const auto word = [&](size_t most) {
    std::string text(random() % most + 1, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  size_t n_found = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops(random() % 3);
    for (auto& stop : stops) stop = word(4);
    const auto text = word(20);
    StopTexts cut(stops);
    std::string found;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t size = std::min<size_t>(random() % 4 + 1, rest.size());
      found += cut.push(rest.substr(0, size));
      // Everything that is sure is given at once.
      EXPECT_TRUE(text.starts_with(found));
      rest.remove_prefix(size);
    }
    const bool stopped = cut.found();
    found += cut.finish();
    const auto expected = cut_by_hand(text, stops);
    EXPECT_EQ(found, expected) << text;
    EXPECT_EQ(stopped, expected != text || std::ranges::any_of(stops, [&](const auto& stop) {
                         return text.starts_with(stop) && expected.empty();
                       }));
    n_found += stopped;
  }
  EXPECT_GT(n_found, 1000U);
  EXPECT_LT(n_found, 2500U);
}

TEST(StopTexts, HoldBackOnlyWhatMayBeABeginning) {
  StopTexts cut({"\nYou:", "END"});
  EXPECT_EQ(cut.push("Hello E"), "Hello ");
  EXPECT_EQ(cut.push("N"), "");
  EXPECT_EQ(cut.push("E\n"), "ENE");
  EXPECT_EQ(cut.push("Yo"), "");
  EXPECT_EQ(cut.push("u: hi"), "");
  EXPECT_TRUE(cut.found());
  EXPECT_EQ(cut.push("more"), "");
  EXPECT_EQ(cut.finish(), "");
  StopTexts unfinished({"END"});
  EXPECT_EQ(unfinished.push("an EN"), "an ");
  EXPECT_EQ(unfinished.finish(), "EN");
}

std::shared_ptr<const Tokenizer> bytes() {
  TokenizerConfig config;
  config.type = TokenizerKind::byte;
  return make_tokenizer(config, SpecialTokenSet::none, [](const auto&) {});
}

TEST(ContinuationDecoder, StopsWithinItsOwnTextAndNotInThePrompt) {
  const auto tokenizer = bytes();
  ContinuationDecoder decoder(*tokenizer, tokenizer->encode("one E"), {"END", "€"});
  std::string text;
  for (const int64_t id : tokenizer->encode("ND E")) text += decoder.push(id);
  EXPECT_FALSE(decoder.stopped());
  auto copy = decoder;
  for (const int64_t id : tokenizer->encode("ND!")) text += decoder.push(id);
  EXPECT_TRUE(decoder.stopped());
  EXPECT_EQ(text + decoder.finish(), "ND ");
  // The copy goes its own way, and stops at a character of three bytes.
  std::string other;
  for (const int64_t id : tokenizer->encode("\u20AC")) other += copy.push(id);
  EXPECT_TRUE(copy.stopped());
  EXPECT_EQ(other + copy.finish(), "E");
}

}  // namespace
}  // namespace zoo
