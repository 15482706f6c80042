// Pairs of texts: tables, sequences with segments, batches.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "text/batches/padded_rows.h"
#include "text/batches/text_batches.h"
#include "text/text_rows.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TextFrame kFrame = {.before = {5}, .between = {6}, .after = {6}};

TEST(FramedPairs, HaveSegmentsAndRoom) {
  const auto whole = frame_pair({10, 11}, {20}, 9, kFrame);
  EXPECT_THAT(whole.ids, ElementsAre(5, 10, 11, 6, 20, 6));
  EXPECT_THAT(whole.segments, ElementsAre(0, 0, 0, 0, 1, 1));
  const auto cut = frame_pair({10, 11, 12, 13}, {20}, 6, kFrame);
  EXPECT_THAT(cut.ids, ElementsAre(5, 10, 11, 6, 20, 6));
  EXPECT_THAT(frame_pair({}, {}, 3, kFrame).segments, ElementsAre(0, 0, 1));
  EXPECT_THROW(frame_pair({1}, {2}, 2, kFrame), std::invalid_argument);
}

TEST(FramedPairs, MayHaveTwoTokensBetweenAndOneSegment) {
  // RoBERTa's frame: <s> A </s></s> B </s>, all of it in segment 0.
  const TextFrame frame{.before = {1}, .between = {2, 2}, .after = {2}, .second_segment = 0};
  const auto pair = frame_pair({10, 11, 12}, {20}, 7, frame);
  EXPECT_THAT(pair.ids, ElementsAre(1, 10, 11, 2, 2, 20, 2));
  EXPECT_THAT(pair.segments, ElementsAre(0, 0, 0, 0, 0, 0, 0));
  EXPECT_THROW(frame_pair({1}, {2}, 3, frame), std::invalid_argument);
}

TEST(FramedPairs, MayLoseTheirBeginnings) {
  auto frame = kFrame;
  frame.cut_at = TextEnd::left;
  EXPECT_THAT(frame_pair({10, 11, 12, 13}, {20, 21}, 7, frame).ids, ElementsAre(5, 12, 13, 6, 20, 21, 6));
}

TEST(FramedPairs, LoseTokensOfTheLongerTextFirst) {
  for (int64_t first = 0; first < 9; ++first) {
    for (int64_t second = 0; second < 9; ++second) {
      for (int64_t most = 0; most < 20; ++most) {
        const auto [a, b] = cut_longest_first(first, second, most);
        EXPECT_EQ(a + b, std::min(first + second, most));
        EXPECT_LE(a, first);
        EXPECT_LE(b, second);
        // A text that was cut is not shorter than the other one, except by an odd token.
        EXPECT_TRUE(a == first || a + 1 >= b) << first << " " << second << " " << most;
        EXPECT_TRUE(b == second || b + 1 >= a) << first << " " << second << " " << most;
      }
    }
  }
}

TEST(PairBatches, PadTokensAndSegments) {
  const auto first = TokenStore::from_rows({{10, 11, 12}, {13}}),
             second = TokenStore::from_rows({{20}, {21}});
  const auto source = pair_classification_batches(
      first, second, torch::tensor({1, 0}), 20, ClassPosition::first, kFrame, /*pad=*/0,
      {.batch_size = 2, .batch_tokens = {}, .order = BatchOptions::Order::sequential});
  const auto batch = source->batch(0, 0);
  EXPECT_THAT(int64_values(batch.input.ids.flatten()),
              ElementsAre(5, 10, 11, 12, 6, 20, 6, 5, 13, 6, 21, 6, 0, 0));
  EXPECT_THAT(int64_values(batch.segments.flatten()), ElementsAre(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0));
  EXPECT_THAT(int64_values(batch.input.lengths), ElementsAre(7, 5));
  EXPECT_THAT(int64_values(batch.targets), ElementsAre(1, 0));
  EXPECT_EQ(batch.tokens, 12);
  EXPECT_THROW(pair_classification_batches(first, TokenStore::from_rows({{1}}), torch::tensor({1, 0}), 20,
                                           ClassPosition::first, kFrame, 0, {}),
               DataError);
  EXPECT_THROW(
      pair_classification_batches(first, second, torch::tensor({1}), 20, ClassPosition::first, kFrame, 0, {}),
      DataError);
  EXPECT_THROW(pair_classification_batches(first, second, torch::tensor({1, 0}), 20, ClassPosition::first,
                                           kFrame, -1, {}),
               DataError);
}

// A decoder reads the last token of a pair, and has no segments.
TEST(PairBatches, PointAtTheLastToken) {
  const auto first = TokenStore::from_rows({{10, 11, 12}, {13}}),
             second = TokenStore::from_rows({{20}, {21}});
  const TextFrame frame{.before = {}, .between = {7}, .after = {8}, .second_segment = 0};
  const auto source = pair_classification_batches(
      first, second, torch::tensor({{0.5F}, {2.F}}), 20, ClassPosition::last, frame, /*pad=*/-1,
      {.batch_size = 2, .batch_tokens = {}, .order = BatchOptions::Order::sequential});
  const auto batch = source->batch(0, 0);
  EXPECT_THAT(int64_values(batch.input.ids.flatten()), ElementsAre(10, 11, 12, 7, 20, 8, 13, 7, 21, 8, 0, 0));
  EXPECT_THAT(int64_values(batch.positions), ElementsAre(5, 9));
  EXPECT_FALSE(batch.segments.defined());
  EXPECT_TRUE(batch.targets.equal(torch::tensor({{0.5F}, {2.F}})));
  EXPECT_EQ(batch.n_targets(), 2);
}

// In transformers too: where <eos> is also <pad>, the token before it tells the class.
TEST(PairBatches, PointAtTheLastTokenThatIsNoPadding) {
  const auto first = TokenStore::from_rows({{10, 11}, {8}}), second = TokenStore::from_rows({{20}, {8}});
  const TextFrame frame{.before = {}, .between = {8}, .after = {8}, .second_segment = 0};
  const auto source = pair_classification_batches(
      first, second, torch::tensor({0, 1}), 20, ClassPosition::last, frame, /*pad=*/8,
      {.batch_size = 2, .batch_tokens = {}, .order = BatchOptions::Order::sequential});
  EXPECT_THAT(int64_values(source->batch(0, 0).positions), ElementsAre(3, 5))
      << "all of the second is padding";
}

TEST(PairTables, HaveTwoTextsARow) {
  const TempDir dir;
  const auto path = dir.write("pairs.tsv", "premise\tlabel\thypothesis\na b\tyes\tc\nd\tno\te f\n");
  DataConfig config;
  config.train = {ConfigPath(path.string())};
  config.valid = config.train;
  config.text_column = {"sentence1", "premise"};
  config.pair_column = {"sentence2", "hypothesis"};
  const auto rows = labelled_texts(config).take(Split::train);
  EXPECT_THAT(rows.texts, ElementsAre("a b", "d"));
  EXPECT_THAT(rows.pairs, ElementsAre("c", "e f"));
  EXPECT_THAT(rows.labels, ElementsAre("yes", "no"));
  EXPECT_THAT(rows.inputs(), ElementsAre("a b\tc", "d\te f"));
  EXPECT_THAT(read_texts(path, config), ElementsAre("a b\tc", "d\te f"));
  config.pair_column = {"other"};
  EXPECT_THAT(message_of<DataError>([&] { labelled_texts(config).take(Split::train); }), HasSubstr("other"));
  config.pair_column = {};
  EXPECT_THAT(labelled_texts(config).take(Split::train).pairs, IsEmpty());
  EXPECT_THAT(read_texts(path, config), ElementsAre("a b", "d"));
}

TEST(PairInputs, AreSplitAtTheTab) {
  EXPECT_EQ(split_pair("a b\tc"), std::pair(std::string("a b"), std::string("c")));
  for (const char* wrong : {"a", "", "a\tb\tc"})
    EXPECT_THAT(message_of<DataError>([&] { split_pair(wrong); }), HasSubstr("one tab")) << wrong;
}

}  // namespace
}  // namespace zoo::testing
