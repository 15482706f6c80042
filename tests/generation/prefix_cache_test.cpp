// What prompts begin with is read once: what is kept, what is found, and what is forgotten first.

#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "generation/rows/prompt_reading.h"
#include "tests/support/fake_models.h"
#include "tests/support/requests.h"

namespace zoo::testing {
namespace {

constexpr int64_t kPiece = 4, kBytesOfToken = 8;

/// A prompt of `n` tokens that begins with `n_shared` of the family `family`, and goes on in its own way.
TokenIds prompt_of(int64_t family, int64_t n_shared, int64_t n, int64_t own = 0) {
  TokenIds ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(i < n_shared ? (family + i * 3) % 7 : 7 + (own + i) % 2);
  return ids;
}

/// Reads prompts one after the other, and tells how many tokens each costs.
class ReadingInTurns {
 public:
  explicit ReadingInTurns(int64_t most_bytes)
      : scheduler_(model_, torch::kCPU, {.prompt_piece = kPiece, .prefix_bytes = most_bytes}) {}

  int64_t cost(const TokenIds& prompt) {
    const int64_t before = model_.tokens_read;
    const auto number = scheduler_.submit(requests({prompt}, {.max_new_tokens = 1}).front());
    while (scheduler_.step()) {
    }
    const auto output = scheduler_.take(number).front();
    // Whatever is kept, the output is that of the whole prompt.
    const auto expected = model_.logits_after(HistoryModel::read(prompt)).argmax().item<int64_t>();
    EXPECT_EQ(output.ids, TokenIds{expected});
    return model_.tokens_read - before;
  }

 private:
  HistoryModel model_{{.vocab_size = 9}};
  Scheduler scheduler_;
};

TEST(PrefixCache, FindsTheLongestBeginning) {
  ReadingInTurns reading(1 << 20);
  EXPECT_EQ(reading.cost(prompt_of(1, 6, 9)), 9);    // its first 8 tokens are kept
  EXPECT_EQ(reading.cost(prompt_of(1, 6, 9)), 1);    // the same prompt
  EXPECT_EQ(reading.cost(prompt_of(1, 6, 20)), 12);  // one that goes on from it; now 16 are kept, too
  EXPECT_EQ(reading.cost(prompt_of(1, 6, 20)), 4);
  EXPECT_EQ(reading.cost(prompt_of(1, 6, 15)), 7);  // 8 of the two that fit
  EXPECT_EQ(reading.cost(prompt_of(1, 6, 24)), 8);  // 16, not 8
  EXPECT_EQ(reading.cost(prompt_of(2, 6, 9)), 9);   // nothing of another one
}

TEST(PrefixCache, KeepsWholePiecesAndLeavesATokenToRead) {
  ReadingInTurns reading(1 << 20);
  EXPECT_EQ(reading.cost(prompt_of(1, 12, 12)), 12);  // 8 are kept: the last piece gives the logits
  EXPECT_EQ(reading.cost(prompt_of(1, 8, 8)), 8);     // 8 would leave no token to be read
  EXPECT_EQ(reading.cost(prompt_of(1, 8, 8)), 4);     // its own first 4
  EXPECT_EQ(reading.cost(prompt_of(1, 9, 9)), 1);
  // What has 7 tokens in common has one piece in common.
  ReadingInTurns other(1 << 20);
  EXPECT_EQ(other.cost(prompt_of(1, 12, 12)), 12);
  EXPECT_EQ(other.cost(prompt_of(1, 7, 12)), 12);  // nothing of 4 tokens was kept so far
  EXPECT_EQ(other.cost(prompt_of(1, 7, 12, 1)), 8);
  EXPECT_EQ(other.cost(prompt_of(1, 3, 12)), 12);  // less than a piece
  // Prompts of less than a piece are never kept.
  for (int round = 0; round < 2; ++round) EXPECT_EQ(other.cost(prompt_of(3, 4, 4)), 4);
}

TEST(PrefixCache, ForgetsTheLeastRecentlyUsedFirst) {
  // Beginnings of 8 tokens, of which two have room.
  ReadingInTurns reading(2 * 8 * kBytesOfToken);
  const auto one = prompt_of(1, 9, 9), two = prompt_of(2, 9, 9), three = prompt_of(3, 9, 9);
  EXPECT_EQ(reading.cost(one), 9);
  EXPECT_EQ(reading.cost(two), 9);
  EXPECT_EQ(reading.cost(one), 1);
  EXPECT_EQ(reading.cost(three), 9);  // in place of two, which was used before one
  EXPECT_EQ(reading.cost(one), 1);
  EXPECT_EQ(reading.cost(two), 9);  // in place of three
  EXPECT_EQ(reading.cost(one), 1);
  EXPECT_EQ(reading.cost(three), 9);
  // A byte less has room for one.
  ReadingInTurns narrow(2 * 8 * kBytesOfToken - 1);
  EXPECT_EQ(narrow.cost(one), 9);
  EXPECT_EQ(narrow.cost(two), 9);
  EXPECT_EQ(narrow.cost(two), 1);
  EXPECT_EQ(narrow.cost(one), 9);
  // What is larger than all room leaves the others where they are.
  ReadingInTurns small(8 * kBytesOfToken);
  EXPECT_EQ(small.cost(one), 9);
  EXPECT_EQ(small.cost(prompt_of(2, 40, 40)), 40);
  EXPECT_EQ(small.cost(one), 1);
}

DecodingState state_of(const TokenIds& tokens) {
  DecodingState state(1, torch::kCPU);
  state.layers().push_back(
      std::make_unique<HistoryState>(std::vector<HistoryState::Row>{{.source = {}, .tokens = tokens}}));
  return state;
}

TEST(PrefixCache, KeepsABeginningOnce) {
  PrefixCache cache(2 * 4 * kBytesOfToken);
  const TokenIds first = {1, 2, 3, 4}, second = {5, 6, 7, 8};
  const auto is_kept = [&](TokenIds prompt) {
    prompt.push_back(0);
    const auto found = cache.find(prompt);
    return found.has_value();
  };
  cache.keep(first, state_of(first));
  for (int round = 0; round < 5; ++round) cache.keep(second, state_of(second));
  EXPECT_TRUE(is_kept(first)) << "it would have been forgotten";
  EXPECT_TRUE(is_kept(second));
  EXPECT_EQ(cache.n_shared({1, 2, 3}), 3);
  EXPECT_EQ(cache.n_shared({5, 6, 9, 9}), 2);
  EXPECT_EQ(cache.n_shared({9}), 0);
  // What is given is a copy.
  auto found = cache.find({1, 2, 3, 4, 5}).value();
  dynamic_cast<HistoryState&>(*found.layers().at(0)).rows[0].tokens.clear();
  auto again = cache.find({1, 2, 3, 4, 5}).value();
  EXPECT_EQ(dynamic_cast<HistoryState&>(*again.layers().at(0)).rows[0].tokens, first);
  EXPECT_FALSE(cache.find(first)) << "a token must be left to be read";
  EXPECT_FALSE(PrefixCache(0).find({1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace zoo::testing
