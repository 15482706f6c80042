// Fill-in-the-middle: windows whose documents are read as beginning, end, middle.

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/support.h"
#include "text/batches/text_batches.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

constexpr int64_t kEnd = 3, kPrefix = 7, kSuffix = 8, kMiddle = 9, kFirstText = 100;

Infilling infilling_with(InfillingShares shares) {
  return {.shares = shares, .prefix = kPrefix, .suffix = kSuffix, .middle = kMiddle, .end = kEnd};
}

/// Documents of these lengths with the tokens 100, 101, …, each with an end.
TokenStore documents_of(const std::vector<int64_t>& lengths) {
  std::vector<TokenIds> rows;
  int64_t next = kFirstText;
  for (const int64_t length : lengths) {
    TokenIds row(static_cast<size_t>(length));
    std::iota(row.begin(), row.end(), next);
    next += length;
    row.push_back(kEnd);
    rows.push_back(row);
  }
  return TokenStore::from_rows(rows);
}

TokenIds window_of(const TokenStore& stream, InfillingShares shares, InfillingDraw draw, int64_t begin,
                   int64_t n) {
  TokenIds out(static_cast<size_t>(n), -1);
  copy_infilled(stream, infilling_with(shares), draw, begin, out);
  return out;
}

/// The tokens in the order of the document: what stands after the marks goes back to its place. It is the
/// same for both orders, because nothing stands between the first two marks when the suffix is first.
TokenIds put_back(const TokenIds& window) {
  TokenIds result;
  for (size_t i = 0; i < window.size(); ++i) {
    if (window[i] != kPrefix) {
      result.push_back(window[i]);
      continue;
    }
    const auto at = [&](int64_t mark) {
      return std::find(window.begin() + static_cast<ptrdiff_t>(i), window.end(), mark);
    };
    const auto suffix = at(kSuffix), middle = at(kMiddle), end = std::find(middle, window.end(), kEnd);
    result.insert(result.end(), window.begin() + static_cast<ptrdiff_t>(i) + 1, suffix);
    result.insert(result.end(), middle + 1, end);
    result.insert(result.end(), suffix + 1, middle);
    i = static_cast<size_t>(end - window.begin()) - 1;
  }
  return result;
}

TEST(Infilling, EachDocumentIsItsPartsInAnotherOrder) {
  const auto stream = documents_of({9, 1, 14, 5, 30});
  for (const double suffix_first : {0.0, 0.5, 1.0}) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const InfillingShares shares{.documents = 1, .suffix_first = suffix_first};
      const auto window = window_of(stream, shares, {.seed = seed, .epoch = 1}, 0, 60);
      EXPECT_EQ(std::ranges::count(window, kPrefix), 5) << seed;
      EXPECT_EQ(std::ranges::count(window, kSuffix), 5) << seed;
      EXPECT_EQ(std::ranges::count(window, kMiddle), 5) << seed;
      const auto tokens = put_back(window);
      EXPECT_EQ(tokens, stream.slice(0, std::ssize(tokens))) << seed;
      EXPECT_EQ(std::ssize(tokens), 60 - 3 * 5) << "each mark takes the room of one token at the end";
    }
  }
}

TEST(Infilling, TheSuffixMayBeFirst) {
  const auto stream = documents_of({40});
  const auto parts_of = [&](double suffix_first, uint64_t seed) {
    const auto window =
        window_of(stream, {.documents = 1, .suffix_first = suffix_first}, {.seed = seed, .epoch = 0}, 0, 44);
    const auto suffix = std::ranges::find(window, kSuffix), middle = std::ranges::find(window, kMiddle);
    return std::array<TokenIds, 3>{TokenIds(window.begin() + 1, suffix), TokenIds(suffix + 1, middle),
                                   TokenIds(middle + 1, window.end())};
  };
  int first = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    // The cuts do not depend on the order.
    const auto [prefix, suffix, rest] = parts_of(0, seed);
    const auto [nothing, same_suffix, all] = parts_of(1, seed);
    EXPECT_TRUE(nothing.empty());
    EXPECT_EQ(suffix, same_suffix);
    auto joined = prefix;
    joined.insert(joined.end(), rest.begin(), rest.end());
    EXPECT_EQ(joined, all);
    first += parts_of(0.25, seed)[2] == all && !prefix.empty() ? 1 : 0;
  }
  EXPECT_NEAR(first, 0.25 * 400, 35);
}

TEST(Infilling, AWindowMayBeginWithinADocument) {
  const auto stream = documents_of({20, 20});
  for (int64_t begin = 0; begin < 21; ++begin) {
    const auto tokens = put_back(window_of(stream, {.documents = 1}, {.seed = 5, .epoch = 0}, begin, 16));
    EXPECT_EQ(tokens, stream.slice(begin, begin + std::ssize(tokens))) << begin;
  }
}

TEST(Infilling, CutsAreEverywhere) {
  const auto stream = documents_of({4});
  std::map<std::pair<int64_t, int64_t>, int> seen;  // the lengths of beginning and middle
  for (int64_t epoch = 0; epoch < 2000; ++epoch) {
    const auto window = window_of(stream, {.documents = 1}, {.seed = 1, .epoch = epoch}, 0, 8);
    if (window[0] != kPrefix) FAIL();
    const auto suffix = std::ranges::find(window, kSuffix), middle = std::ranges::find(window, kMiddle);
    const auto end = std::ranges::find(window, kEnd);
    ++seen[{suffix - window.begin() - 1, std::distance(middle, end) - 1}];
  }
  EXPECT_EQ(seen.size(), 15u);  // 0 ≤ first ≤ second ≤ 4
  for (const auto& [cuts, n] : seen) {
    const double expected = 2000.0 / 25 * (cuts.second == 0 ? 1 : 2);  // two different places in either order
    EXPECT_NEAR(n, expected, 50) << cuts.first << ' ' << cuts.second;
  }
}

TEST(Infilling, TheShareIsOfDocumentsAndDiffersBetweenEpochs) {
  const auto stream = documents_of(std::vector<int64_t>(400, 6));
  std::set<std::vector<bool>> choices;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<bool> chosen;
    for (int64_t document = 0; document < 300; ++document)
      chosen.push_back(
          window_of(stream, {.documents = 0.4}, {.seed = 2, .epoch = epoch}, document * 7, 10)[0] == kPrefix);
    EXPECT_NEAR(static_cast<double>(std::ranges::count(chosen, true)), 0.4 * 300, 35);
    choices.insert(chosen);
    EXPECT_EQ(window_of(stream, {.documents = 0.4}, {.seed = 2, .epoch = epoch}, 0, 200),
              window_of(stream, {.documents = 0.4}, {.seed = 2, .epoch = epoch}, 0, 200));
  }
  EXPECT_EQ(choices.size(), 3u);
}

TEST(Infilling, WithoutRoomOrAShareNothingChanges) {
  const auto stream = documents_of({9, 9});
  EXPECT_EQ(window_of(stream, {}, {.seed = 1, .epoch = 0}, 0, 20), stream.slice(0, 20));
  EXPECT_EQ(window_of(stream, {.documents = 1}, {.seed = 1, .epoch = 0}, 4, 3), stream.slice(4, 7));
}

TEST(Infilling, BatchesPredictTheWindowsTheyRead) {
  const auto stream = documents_of(std::vector<int64_t>(60, 11));
  BatchOptions options;
  options.batch_size = 4;
  options.seed = 3;
  const auto source = language_modeling_batches(stream, 24, 1, options,
                                                infilling_with({.documents = 0.5, .suffix_first = 0.5}));
  const auto plain = language_modeling_batches(stream, 24, 1, options);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    ASSERT_EQ(source->n_batches(epoch), plain->n_batches(epoch));
    const auto batch = source->batch(epoch, 1);
    const auto targets = batch.targets.view({4, 24});
    EXPECT_TRUE(torch::equal(batch.input.ids.narrow(1, 1, 23), targets.narrow(1, 0, 23)));
    EXPECT_FALSE(torch::equal(batch.input.ids, plain->batch(epoch, 1).input.ids));
    const auto again = language_modeling_batches(stream, 24, 1, options,
                                                 infilling_with({.documents = 0.5, .suffix_first = 0.5}));
    EXPECT_TRUE(torch::equal(again->batch(epoch, 1).input.ids, batch.input.ids));
  }
}

std::unique_ptr<Tokenizer> tokenizer_with(SpecialTokenSet special, TokenizerKind type = TokenizerKind::bpe) {
  TokenizerConfig config;
  config.type = type;
  config.vocab_size = 300;
  const std::vector<std::string> texts(5, "def f(x):\n    return x + 1\n");
  return make_tokenizer(config, special, reader_of({&texts}));
}

TEST(Infilling, AVocabularyOfBpeHasItsTokens) {
  const auto tokenizer = tokenizer_with(SpecialTokenSet::infilling);
  const auto infilling = infilling_of({.documents = 0.5}, *tokenizer);
  EXPECT_EQ(infilling.prefix, 7);
  EXPECT_EQ(infilling.suffix, 8);
  EXPECT_EQ(infilling.middle, 9);
  EXPECT_EQ(infilling.end, tokenizer->special().eos);
  for (const int64_t id : {infilling.prefix, infilling.suffix, infilling.middle})
    EXPECT_THAT(tokenizer->never_generated(), Contains(id));
  // A prompt for a gap is the text with the names of the tokens.
  const auto ids = tokenizer->encode("<fim_prefix>f(<fim_suffix>)<fim_middle>");
  EXPECT_THAT(ids, ElementsAre(7, tokenizer->encode("f")[0], tokenizer->encode("(")[0], 8,
                               tokenizer->encode(")")[0], 9));
  EXPECT_EQ(tokenizer->decode(ids), "f()");
}

TEST(Infilling, OtherVocabulariesAreRefused) {
  const auto lacks = [](SpecialTokenSet special) {
    return message_of<DataError>([&] { infilling_of({.documents = 0.5}, *tokenizer_with(special)); });
  };
  EXPECT_THAT(lacks(SpecialTokenSet::all), HasSubstr("<fim_prefix>"));
  EXPECT_THAT(
      message_of<DataError>([] { tokenizer_with(SpecialTokenSet::infilling, TokenizerKind::wordpiece); }),
      HasSubstr("bpe"));
}

}  // namespace
}  // namespace zoo
