#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "data/batch_source.h"
#include "data/epoch_plan.h"
#include "data/prefetch.h"
#include "tests/data/support.h"
#include "text/batches/text_batches.h"

namespace zoo {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

using Order = BatchOptions::Order;
using Bucketing = BatchOptions::Bucketing;
constexpr SpecialTokens all_special = {.pad = 0, .unk = 1, .bos = 2, .eos = 3, .mask = 4, .cls = 5, .sep = 6};

TokenIds values(const torch::Tensor& t) {
  if (!t.defined()) return {};
  const auto flat = t.contiguous().view(-1);
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

/// Everything in a batch, for comparisons.
std::vector<TokenIds> contents(const Batch& b) {
  return {values(b.input.ids),
          values(b.input.lengths),
          values(b.decoder.ids),
          values(b.decoder.lengths),
          values(b.targets),
          values(b.positions),
          {b.tokens}};
}

/// Token `first` + i at position i.
TokenIds counting(int64_t n, int64_t first = 7) {
  TokenIds ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// Rows of 1 … `longest` tokens. The first token of each row is 1000 + the row's number, which identifies it.
TokenStore numbered_rows(int64_t n, uint64_t seed, int64_t longest = 12) {
  CounterRandom random({seed});
  std::vector<TokenIds> rows;
  for (int64_t i = 0; i < n; ++i) {
    rows.emplace_back(static_cast<size_t>(1 + random.below(longest)), 7);
    rows.back()[0] = 1000 + i;
  }
  return TokenStore::from_rows(rows);
}

struct Maker {
  const char* name;
  std::function<std::unique_ptr<BatchSource>(const BatchOptions&)> make;
};

std::vector<Maker> all_makers() {
  return {
      {"language_modeling",
       [](const BatchOptions& o) {
         return language_modeling_batches(TokenStore::from_rows({counting(1000)}), 10, 1, o);
       }},
      {"infilling",
       [](const BatchOptions& o) {
         const Infilling infilling{.shares = {.documents = 0.5, .suffix_first = 0.5},
                                   .prefix = 7,
                                   .suffix = 8,
                                   .middle = 9,
                                   .end = -1};
         return language_modeling_batches(numbered_rows(300, 3), 20, 1, o, infilling);
       }},
      {"masked",
       [](const BatchOptions& o) {
         return masked_language_modeling_batches(TokenStore::from_rows({counting(1000)}), 12, all_special,
                                                 1007, {}, o);
       }},
      {"text_to_text",
       [](const BatchOptions& o) {
         return text_to_text_batches(numbered_rows(100, 1), numbered_rows(100, 2), 10, 8,
                                     PairLayout::two_sides, all_special, o);
       }},
      {"classification_first",
       [](const BatchOptions& o) {
         return classification_batches(numbered_rows(100, 1), torch::arange(100), 9, ClassPosition::first,
                                       all_special, o);
       }},
      {"classification_last",
       [](const BatchOptions& o) {
         return classification_batches(numbered_rows(100, 1), torch::arange(100), 9, ClassPosition::last,
                                       all_special, o);
       }},
  };
}

class EverySource : public ::testing::TestWithParam<Maker> {};

TEST_P(EverySource, IsAPureFunctionOfSeedEpochAndIndex) {
  for (const auto bucketing : {Bucketing::by_length, Bucketing::none}) {
    const BatchOptions options{.batch_size = 8, .batch_tokens = {}, .seed = 5, .bucketing = bucketing};
    const auto asked_in_order = GetParam().make(options);
    std::map<std::pair<int64_t, int64_t>, std::vector<TokenIds>> seen;
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      for (int64_t i = 0; i < asked_in_order->n_batches(epoch); ++i) {
        seen[{epoch, i}] = contents(asked_in_order->batch(epoch, i));
      }
    }
    const auto asked_backwards = GetParam().make(options);
    for (auto it = seen.rbegin(); it != seen.rend(); ++it) {
      ASSERT_EQ(contents(asked_backwards->batch(it->first.first, it->first.second)), it->second);
    }
    // A resumed run reads one batch in the middle and nothing before it.
    EXPECT_EQ(contents(GetParam().make(options)->batch(2, 3)), (seen[{2, 3}]));

    auto other = options;
    other.seed = 6;
    EXPECT_NE(contents(GetParam().make(other)->batch(0, 0)), (seen[{0, 0}]));
    EXPECT_NE((seen[{0, 0}]), (seen[{1, 0}]));
  }
}

TEST_P(EverySource, FourBatchesOfEightAreOneOfThirtyTwo) {
  BatchOptions options{.batch_size = 8, .batch_tokens = {}, .seed = 5, .bucketing = Bucketing::none};
  const auto small = GetParam().make(options);
  options.batch_size = 32;
  const auto large = GetParam().make(options);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t i = 0; i < large->n_batches(epoch); ++i) {
      const Batch whole = large->batch(epoch, i);
      TokenIds targets;
      int64_t tokens = 0;
      for (int64_t part = 0; part < 4; ++part) {
        const Batch batch = small->batch(epoch, 4 * i + part);
        const TokenIds some = values(batch.targets);
        targets.insert(targets.end(), some.begin(), some.end());
        tokens += batch.tokens;
        // The rows are the same up to padding.
        const int64_t width = batch.input.length();
        const auto rows = whole.input.ids.slice(0, 8 * part, 8 * part + 8).slice(1, 0, width);
        EXPECT_TRUE(torch::equal(rows, batch.input.ids));
      }
      EXPECT_EQ(targets, values(whole.targets));
      EXPECT_EQ(tokens, whole.tokens);
    }
  }
}

TEST_P(EverySource, SequentialOrderNeverChangesAndKeepsEverything) {
  const BatchOptions options{.batch_size = 8, .batch_tokens = {}, .seed = 5, .order = Order::sequential};
  const auto source = GetParam().make(options);
  ASSERT_EQ(source->n_batches(0), source->n_batches(1));
  for (int64_t i = 0; i < source->n_batches(0); ++i) {
    EXPECT_EQ(contents(source->batch(0, i)), contents(source->batch(1, i)));
  }
}

TEST_P(EverySource, WhatIsOutsideIsAnError) {
  const auto source = GetParam().make({});
  EXPECT_THROW(source->batch(0, -1), std::out_of_range);
  EXPECT_THROW(source->batch(0, source->n_batches(0)), std::out_of_range);
  EXPECT_THROW(source->batch(-1, 0), std::out_of_range);
  EXPECT_THROW(source->n_batches(-1), std::out_of_range);
  EXPECT_THROW(GetParam().make({.batch_size = 0, .batch_tokens = {}})->n_batches(0), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Sources, EverySource, ::testing::ValuesIn(all_makers()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(CounterRandom, IsTheSameOnEveryMachine) {
  CounterRandom random({1, 2, 3});
  std::vector<int64_t> numbers;
  for (int i = 0; i < 4; ++i) numbers.push_back(random.below(1000));
  EXPECT_THAT(numbers, ElementsAre(133, 636, 651, 354));
}

TEST(CounterRandom, DrawsAllNumbersEquallyOften) {
  CounterRandom random({7});
  std::vector<int> counts(10);
  for (int i = 0; i < 100000; ++i) ++counts[static_cast<size_t>(random.below(10))];
  for (const int n : counts) EXPECT_NEAR(n, 10000, 500);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) sum += random.uniform();
  EXPECT_NEAR(sum / 100000, 0.5, 0.01);
}

TEST(LanguageModeling, SequentialPredictsEveryTokenButTheFirstOnce) {
  for (const int64_t n : {2, 10, 11, 12, 95, 101}) {
    const auto source =
        language_modeling_batches(TokenStore::from_rows({counting(n)}), 10, 1,
                                  {.batch_size = 4, .batch_tokens = {}, .order = Order::sequential});
    TokenIds predicted;
    int64_t tokens = 0;
    for (int64_t i = 0; i < source->n_batches(0); ++i) {
      const Batch batch = source->batch(0, i);
      EXPECT_TRUE(torch::equal(batch.input.ids.view(-1) + 1, batch.targets));
      EXPECT_FALSE(batch.positions.defined());
      EXPECT_FALSE(batch.input.lengths.defined());
      const TokenIds some = values(batch.targets);
      predicted.insert(predicted.end(), some.begin(), some.end());
      tokens += batch.tokens;
    }
    EXPECT_EQ(predicted, counting(n - 1, 8)) << n;
    EXPECT_EQ(tokens, n - 1);
  }
}

TEST(LanguageModeling, ShuffledWindowsCoverTheStreamOnceFromAnotherOffsetEachEpoch) {
  const auto source = language_modeling_batches(TokenStore::from_rows({counting(1000)}), 10, 1,
                                                {.batch_size = 3, .batch_tokens = {}});
  std::set<int64_t> offsets;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<int64_t> starts;
    for (int64_t i = 0; i < source->n_batches(epoch); ++i) {
      const Batch batch = source->batch(epoch, i);
      ASSERT_EQ(batch.input.ids.sizes(), (std::vector<int64_t>{3, 10}));
      for (int64_t b = 0; b < 3; ++b) starts.push_back(batch.input.ids[b][0].item<int64_t>() - 7);
    }
    EXPECT_FALSE(std::ranges::is_sorted(starts));
    std::ranges::sort(starts);
    offsets.insert(starts.front() % 10);
    for (size_t i = 1; i < starts.size(); ++i) {
      EXPECT_EQ((starts[i] - starts[i - 1]) % 10, 0);
      EXPECT_GE(starts[i] - starts[i - 1], 10);
    }
    EXPECT_GE(starts.size(), 96);  // 98 or 99 windows; at most two do not fill a batch of three
  }
  EXPECT_GE(offsets.size(), 5);
}

TEST(LanguageModeling, AShortTextIsOneWindow) {
  for (const auto order : {Order::shuffled, Order::sequential}) {
    const auto source = language_modeling_batches(TokenStore::from_rows({counting(5)}), 100, 1,
                                                  {.batch_size = 32, .batch_tokens = {}, .order = order});
    EXPECT_EQ(source->n_batches(0), 1);
    EXPECT_THAT(values(source->batch(0, 0).input.ids), ElementsAre(7, 8, 9, 10));
    EXPECT_THAT(values(source->batch(0, 0).targets), ElementsAre(8, 9, 10, 11));
  }
  EXPECT_THROW(language_modeling_batches(TokenStore::from_rows({{7}}), 10, 1, {}), DataError);
  EXPECT_THROW(language_modeling_batches(TokenStore(), 10, 1, {}), DataError);
}

TEST(LanguageModeling, WhatFollowsAPrefixIsPredictedOnce) {
  for (const int64_t n : {31, 34, 100}) {
    const auto source =
        language_modeling_batches(TokenStore::from_rows({counting(n)}), 10, 4,
                                  {.batch_size = 4, .batch_tokens = {}, .order = Order::sequential});
    TokenIds predicted;
    for (int64_t i = 0; i < source->n_batches(0); ++i) {
      const Batch batch = source->batch(0, i);
      const TokenIds targets = values(batch.targets), positions = values(batch.positions),
                     ids = values(batch.input.ids);
      ASSERT_EQ(targets.size(), positions.size());
      for (size_t k = 0; k < targets.size(); ++k) {
        EXPECT_EQ(ids[static_cast<size_t>(positions[k])] + 1, targets[k]);
        EXPECT_GE(positions[k] % batch.input.length(), 3);
      }
      predicted.insert(predicted.end(), targets.begin(), targets.end());
    }
    EXPECT_EQ(predicted, counting(n - 4, 7 + 4)) << n;
  }
}

// The two families are then compared on the same predictions.
TEST(LanguageModeling, AnEncoderDecoderPredictsTheSameTokensFromTheSameTokens) {
  for (const int64_t n : {31, 34, 100}) {
    const BatchOptions options{.batch_size = 4, .batch_tokens = {}, .order = Order::sequential};
    const auto stream = TokenStore::from_rows({counting(n)});
    const auto one = language_modeling_batches(stream, 10, 4, options);
    const auto two = prefix_language_modeling_batches(stream, 10, 4, all_special, options);
    ASSERT_EQ(one->n_batches(0), two->n_batches(0));
    for (int64_t i = 0; i < one->n_batches(0); ++i) {
      const Batch a = one->batch(0, i), b = two->batch(0, i);
      EXPECT_EQ(values(a.targets), values(b.targets));
      const auto window = a.input.ids;
      EXPECT_EQ(values(b.input.ids.narrow(1, 0, 4)), values(window.narrow(1, 0, 4)));
      EXPECT_THAT(values(b.input.ids.select(1, 4)), Each(all_special.eos));
      EXPECT_THAT(values(b.decoder.ids.select(1, 0)), Each(all_special.bos));
      EXPECT_EQ(values(b.decoder.ids.narrow(1, 1, b.decoder.length() - 1)),
                values(window.narrow(1, 4, window.size(1) - 4)));
      EXPECT_EQ(b.tokens, b.input.ids.numel() + b.decoder.ids.numel());
    }
  }
  EXPECT_THROW(prefix_language_modeling_batches(TokenStore::from_rows({counting(4)}), 10, 4, all_special, {}),
               DataError);
}

TEST(LanguageModeling, BatchTokensCountsWindows) {
  const auto source = language_modeling_batches(TokenStore::from_rows({counting(1000)}), 10, 1,
                                                {.batch_size = 1, .batch_tokens = 45});
  EXPECT_EQ(source->batch(0, 0).input.batch_size(), 4);
  EXPECT_EQ(source->batch(0, 0).tokens, 40);
}

TEST(MaskedLanguageModeling, HidesFifteenPercentOfWhichEightyTenTen) {
  constexpr int64_t n = 200000, vocab = 500;
  CounterRandom random({9});
  TokenIds stream;
  for (int64_t i = 0; i < n; ++i) stream.push_back(i % 50 == 0 ? 3 : 7 + random.below(vocab - 7));
  const auto source = masked_language_modeling_batches(TokenStore::from_rows({stream}), 102, all_special,
                                                       vocab, {}, {.batch_size = 10, .batch_tokens = {}});
  int64_t tokens = 0, hidden = 0, masked = 0, kept = 0, replaced = 0;
  for (int64_t i = 0; i < source->n_batches(0); ++i) {
    const Batch batch = source->batch(0, i);
    ASSERT_EQ(batch.input.length(), 102);
    EXPECT_THAT(values(batch.input.ids.select(1, 0)), Each(5));
    EXPECT_THAT(values(batch.input.ids.select(1, 101)), Each(6));
    const TokenIds targets = values(batch.targets), positions = values(batch.positions),
                   ids = values(batch.input.ids);
    ASSERT_EQ(targets.size(), positions.size());
    EXPECT_TRUE(std::ranges::is_sorted(positions));
    EXPECT_EQ(std::set<int64_t>(positions.begin(), positions.end()).size(), positions.size());
    tokens += 10 * 100 - std::ranges::count(ids, 3);
    for (size_t k = 0; k < targets.size(); ++k) {
      const int64_t shown = ids[static_cast<size_t>(positions[k])];
      ASSERT_GE(targets[k], 7);
      ++hidden;
      if (shown == 4) {
        ++masked;
      } else if (shown == targets[k]) {
        ++kept;
      } else {
        ASSERT_GE(shown, 7);
        ASSERT_LT(shown, vocab);
        ++replaced;
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(hidden) / static_cast<double>(tokens), 0.15, 0.003);
  EXPECT_NEAR(static_cast<double>(masked) / static_cast<double>(hidden), 0.8, 0.01);
  EXPECT_NEAR(static_cast<double>(replaced) / static_cast<double>(hidden), 0.1, 0.01);
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(hidden), 0.1, 0.01);
}

TEST(MaskedLanguageModeling, PuttingTheTargetsBackGivesTheText) {
  const auto source =
      masked_language_modeling_batches(TokenStore::from_rows({counting(95)}), 12, all_special, 200, {},
                                       {.batch_size = 4, .batch_tokens = {}, .order = Order::sequential});
  TokenIds text;
  for (int64_t i = 0; i < source->n_batches(0); ++i) {
    const Batch batch = source->batch(0, i);
    auto ids = batch.input.ids.clone();
    ids.view(-1).index_put_({batch.positions}, batch.targets);
    const TokenIds some = values(ids.slice(1, 1, batch.input.length() - 1));
    text.insert(text.end(), some.begin(), some.end());
  }
  EXPECT_EQ(text, counting(95));
}

TEST(MaskedLanguageModeling, EachWindowHasATargetAndEachEpochOthers) {
  const auto source =
      masked_language_modeling_batches(TokenStore::from_rows({counting(300)}), 5, all_special, 400,
                                       {.probability = 0.01}, {.batch_size = 1, .batch_tokens = {}});
  for (int64_t i = 0; i < source->n_batches(0); ++i) EXPECT_EQ(source->batch(0, i).n_targets(), 1);

  // One window is the whole text, so that epochs differ only in the hidden tokens.
  const auto same_text =
      masked_language_modeling_batches(TokenStore::from_rows({counting(100)}), 102, all_special, 400, {},
                                       {.batch_size = 1, .batch_tokens = {}});
  EXPECT_NE(values(same_text->batch(0, 0).positions), values(same_text->batch(1, 0).positions));
}

TEST(MaskedLanguageModeling, NeedsItsSpecialTokens) {
  SpecialTokens no_mask = all_special;
  no_mask.mask = -1;
  EXPECT_THAT(message_of<DataError>([&] {
                masked_language_modeling_batches(TokenStore::from_rows({counting(9)}), 5, no_mask, 20, {},
                                                 {});
              }),
              HasSubstr("<mask>"));
  EXPECT_THROW(masked_language_modeling_batches(TokenStore(), 5, all_special, 20, {}, {}), DataError);
}

TEST(TextToText, RowsHaveTheirEndsAndPadding) {
  const auto source =
      text_to_text_batches(TokenStore::from_rows({{10, 11}, {12, 13, 14, 15}}),
                           TokenStore::from_rows({{20, 21, 22}, {23}}), 4, 100, PairLayout::two_sides,
                           all_special, {.batch_size = 2, .batch_tokens = {}, .order = Order::sequential});
  const Batch batch = source->batch(0, 0);
  EXPECT_THAT(values(batch.input.ids), ElementsAre(10, 11, 3, 0, 12, 13, 14, 3));  // the second one is cut
  EXPECT_THAT(values(batch.input.lengths), ElementsAre(3, 4));
  EXPECT_THAT(values(batch.decoder.ids), ElementsAre(2, 20, 21, 22, 2, 23, 0, 0));
  EXPECT_THAT(values(batch.decoder.lengths), ElementsAre(4, 2));
  EXPECT_THAT(values(batch.targets), ElementsAre(20, 21, 22, 3, 23, 3));
  EXPECT_THAT(values(batch.positions), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(batch.tokens, 3 + 4 + 4 + 2);
}

TEST(TextToText, ADecoderAloneReadsBothInOneSequence) {
  const auto source =
      text_to_text_batches(TokenStore::from_rows({{10, 11}, {12, 13, 14, 15}}),
                           TokenStore::from_rows({{20, 21, 22}, {23}}), 4, 100, PairLayout::one_stream,
                           all_special, {.batch_size = 2, .batch_tokens = {}, .order = Order::sequential});
  const Batch batch = source->batch(0, 0);
  EXPECT_THAT(values(batch.input.ids), ElementsAre(10, 11, 3, 20, 21, 22, 12, 13, 14, 3, 23, 0));
  EXPECT_THAT(values(batch.input.lengths), ElementsAre(6, 5));
  EXPECT_FALSE(batch.decoder.defined());
  EXPECT_THAT(values(batch.targets), ElementsAre(20, 21, 22, 3, 23, 3));
  EXPECT_THAT(values(batch.positions), ElementsAre(2, 3, 4, 5, 9, 10));
  EXPECT_EQ(batch.tokens, 6 + 5);
}

TEST(TextToText, EachSideIsCutAtItsOwnLength) {
  const auto store = [](int64_t first) { return TokenStore::from_rows({counting(8, first)}); };
  const BatchOptions options{.batch_size = 1, .batch_tokens = {}, .order = Order::sequential};
  for (const auto& [source_length, target_length] : {std::pair(3, 6), std::pair(6, 3)}) {
    SCOPED_TRACE(target_length);
    TokenIds source = counting(source_length - 1, 100), target = counting(target_length - 1, 200);
    source.push_back(all_special.eos);
    target.push_back(all_special.eos);
    const auto batch = text_to_text_batches(store(100), store(200), source_length, target_length,
                                            PairLayout::two_sides, all_special, options)
                           ->batch(0, 0);
    EXPECT_EQ(values(batch.input.ids), source);
    EXPECT_EQ(values(batch.targets), target);
    const auto stream = text_to_text_batches(store(100), store(200), source_length, target_length,
                                             PairLayout::one_stream, all_special, options)
                            ->batch(0, 0);
    EXPECT_EQ(stream.input.length(), source_length + target_length - 1);
    EXPECT_EQ(values(stream.targets), target);
  }
}

TEST(TextToText, LengthsAndPositionsAreLeftOutWhereNothingIsPadded) {
  const auto source = text_to_text_batches(
      TokenStore::from_rows({{10}, {12}}), TokenStore::from_rows({{20}, {23}}), 9, 9, PairLayout::two_sides,
      all_special, {.batch_size = 2, .batch_tokens = {}, .order = Order::sequential});
  const Batch batch = source->batch(0, 0);
  EXPECT_FALSE(batch.input.lengths.defined());
  EXPECT_FALSE(batch.decoder.lengths.defined());
  EXPECT_FALSE(batch.positions.defined());
  EXPECT_THAT(values(batch.targets), ElementsAre(20, 3, 23, 3));
}

TEST(TextToText, PositionsPointAtTheTokenBeforeTheTarget) {
  const auto source =
      text_to_text_batches(numbered_rows(64, 1), numbered_rows(64, 2), 20, 20, PairLayout::two_sides,
                           all_special, {.batch_size = 8, .batch_tokens = {}});
  for (int64_t i = 0; i < source->n_batches(0); ++i) {
    const Batch batch = source->batch(0, i);
    const TokenIds targets = values(batch.targets), positions = values(batch.positions),
                   ids = values(batch.decoder.ids);
    for (size_t k = 0; k < targets.size() && batch.positions.defined(); ++k) {
      const auto at = static_cast<size_t>(positions[k]);
      EXPECT_NE(ids[at], 0);
      if (targets[k] != 3) {  // teacher forcing: the target is the next input
        EXPECT_EQ(ids[at + 1], targets[k]);
      }
    }
  }
}

/// How often each numbered row occurs in the inputs of an epoch.
std::map<int64_t, int> occurrences(BatchSource& source, int64_t epoch) {
  std::map<int64_t, int> counts;
  for (int64_t i = 0; i < source.n_batches(epoch); ++i) {
    for (const int64_t id : values(source.batch(epoch, i).input.ids)) {
      if (id >= 1000) ++counts[id - 1000];
    }
  }
  return counts;
}

TEST(Bucketing, EveryPairOnceAnEpochAndPairsStayPairs) {
  for (const auto bucketing : {Bucketing::by_length, Bucketing::none}) {
    for (const auto& tokens : {std::optional<int64_t>(), std::optional<int64_t>(50)}) {
      const auto source = text_to_text_batches(
          numbered_rows(4000, 1), numbered_rows(4000, 1), 50, 50, PairLayout::two_sides, all_special,
          {.batch_size = 8, .batch_tokens = tokens, .bucketing = bucketing});
      for (int64_t epoch = 0; epoch < 2; ++epoch) {
        const auto counts = occurrences(*source, epoch);
        EXPECT_EQ(counts.size(), 4000);
        for (const auto& [row, n] : counts) ASSERT_EQ(n, 1) << row;
      }
      const Batch batch = source->batch(0, 0);
      EXPECT_TRUE(torch::equal(batch.input.ids.select(1, 0), batch.decoder.ids.select(1, 1)));
    }
  }
}

double padding_share(BatchSource& source) {
  int64_t padded = 0, real = 0;
  for (int64_t i = 0; i < source.n_batches(0); ++i) {
    const Batch batch = source.batch(0, i);
    padded += batch.input.ids.numel() + (batch.decoder.defined() ? batch.decoder.ids.numel() : 0);
    real += batch.tokens;
  }
  return 1 - static_cast<double>(real) / static_cast<double>(padded);
}

TEST(Bucketing, AvoidsPaddingInRandomOrder) {
  const auto make = [](Bucketing bucketing) {
    return classification_batches(numbered_rows(4000, 1, 40), torch::arange(4000), 100, ClassPosition::last,
                                  all_special,
                                  {.batch_size = 16, .batch_tokens = {}, .bucketing = bucketing});
  };
  EXPECT_GT(padding_share(*make(Bucketing::none)), 0.3);
  EXPECT_LT(padding_share(*make(Bucketing::by_length)), 0.05);
  const auto source = make(Bucketing::by_length);
  std::vector<int64_t> widths;
  for (int64_t i = 0; i < 40; ++i) widths.push_back(source->batch(0, i).input.length());
  EXPECT_FALSE(std::ranges::is_sorted(widths));
}

TEST(Bucketing, BatchTokensBoundsThePaddedSize) {
  for (const auto order : {Order::shuffled, Order::sequential}) {
    const auto source = text_to_text_batches(numbered_rows(1000, 1, 30), numbered_rows(1000, 2, 30), 100, 100,
                                             PairLayout::two_sides, all_special,
                                             {.batch_size = 1, .batch_tokens = 120, .order = order});
    int64_t rows = 0;
    for (int64_t i = 0; i < source->n_batches(0); ++i) {
      const Batch batch = source->batch(0, i);
      rows += batch.input.batch_size();
      EXPECT_LE(batch.input.batch_size() * std::max(batch.input.length(), batch.decoder.length()), 120);
    }
    EXPECT_EQ(rows, 1000);
    if (order == Order::shuffled) {  // full batches: about 1000·20/120 = 170
      EXPECT_LT(source->n_batches(0), 300);
    }
  }
  // A sequence that alone exceeds the limit is a batch of its own.
  const auto source =
      text_to_text_batches(numbered_rows(20, 1, 30), numbered_rows(20, 2, 30), 100, 100,
                           PairLayout::two_sides, all_special, {.batch_size = 1, .batch_tokens = 1});
  EXPECT_EQ(source->n_batches(0), 20);
}

// A long sequence makes only its own batch small.
TEST(Bucketing, ABatchHasAsManyRowsAsFit) {
  const std::vector<int64_t> lengths = {9, 2, 2, 2, 2, 2, 2};
  const auto plan = plan_epoch(lengths, {.batch_size = 1, .batch_tokens = 10, .order = Order::sequential}, 0);
  EXPECT_THAT(plan.cuts, ElementsAre(0, 1, 6, 7));
}

TEST(TakeRows, CountsPositionsFromItsFirstRow) {
  Batch batch;
  batch.input.ids = torch::arange(12).view({3, 4});
  batch.positions = torch::tensor({0, 5, 6, 11});
  batch.targets = torch::tensor({20, 21, 22, 23});
  const auto part = take_rows(batch, 1, 2);
  EXPECT_THAT(values(part.positions), ElementsAre(1, 2, 7));
  EXPECT_THAT(values(part.targets), ElementsAre(21, 22, 23));
  EXPECT_EQ(part.first_row, 1);
}

TEST(LastBatch, IsLeftOutWhenShuffledUnlessItIsTheOnlyOne) {
  const auto make = [](int64_t rows, Order order, Bucketing bucketing) {
    return classification_batches(
        numbered_rows(rows, 1), torch::arange(rows), 20, ClassPosition::first, all_special,
        {.batch_size = 8, .batch_tokens = {}, .order = order, .bucketing = bucketing});
  };
  for (const auto bucketing : {Bucketing::by_length, Bucketing::none}) {
    EXPECT_EQ(make(20, Order::shuffled, bucketing)->n_batches(0), 2);
    EXPECT_EQ(make(16, Order::shuffled, bucketing)->n_batches(0), 2);
    EXPECT_EQ(make(5, Order::shuffled, bucketing)->n_batches(0), 1);
    EXPECT_EQ(make(5, Order::shuffled, bucketing)->batch(0, 0).input.batch_size(), 5);
    EXPECT_EQ(make(20, Order::sequential, bucketing)->n_batches(0), 3);
    EXPECT_EQ(make(20, Order::sequential, bucketing)->batch(0, 2).input.batch_size(), 4);
  }
}

TEST(LastBatch, MoreRowsThanThereAreMakeOne) {
  const auto source =
      classification_batches(numbered_rows(20, 1), torch::arange(20), 20, ClassPosition::first, all_special,
                             {.batch_size = int64_t{1} << 62,
                              .batch_tokens = {},
                              .order = Order::shuffled,
                              .bucketing = Bucketing::by_length});
  EXPECT_EQ(source->n_batches(0), 1);
  EXPECT_EQ(source->batch(0, 0).input.batch_size(), 20);
}

TEST(PlanByLength, HasEverySequenceOnceTheLongestFirst) {
  const std::vector<int64_t> lengths = {3, 9, 1, 4, 4, 30, 2, 1};
  const auto plan = plan_by_length(lengths, {.rows = 3, .tokens = 12});
  EXPECT_THAT(plan.examples, ElementsAre(5, 1, 3, 4, 0, 6, 2, 7));
  EXPECT_THAT(plan.cuts, ElementsAre(0, 1, 2, 5, 8)) << "30 alone; 9; 4+4+3 padded to 12; at most 3 rows";
  EXPECT_EQ(plan_by_length(lengths, {.rows = 100, .tokens = 10'000}).n_batches(), 1);
  EXPECT_EQ(plan_by_length({}, {.rows = 3, .tokens = 12}).n_batches(), 0);
}

TEST(ForEachBatch, TellsWhatIsDoneAfterEachBatch) {
  const std::vector<int64_t> lengths = {3, 9, 1};
  std::vector<int64_t> used, told;
  for_each_batch(
      lengths, {.rows = 2, .tokens = 9},
      [&](auto examples) { used.insert(used.end(), examples.begin(), examples.end()); },
      [&](int64_t done, int64_t all) {
        EXPECT_EQ(done, std::ssize(used));
        EXPECT_EQ(all, 3);
        told.push_back(done);
      });
  EXPECT_THAT(used, ElementsAre(1, 0, 2));
  EXPECT_THAT(told, ElementsAre(1, 3));
  for_each_batch({}, {.rows = 2, .tokens = 9}, [](auto) { FAIL() << "there is no batch"; }, nullptr);
}

TEST(Classification, LooksAtTheFirstOrTheLastToken) {
  const auto texts = TokenStore::from_rows({{10, 11}, {12, 13, 14, 15}, {}});
  const BatchOptions options{.batch_size = 3, .batch_tokens = {}, .order = Order::sequential};
  const auto encoder =
      classification_batches(texts, torch::tensor({1, 0, 2}), 5, ClassPosition::first, all_special, options);
  Batch batch = encoder->batch(0, 0);
  EXPECT_THAT(values(batch.input.ids), ElementsAre(5, 10, 11, 6, 0, 5, 12, 13, 14, 6, 5, 6, 0, 0, 0));
  EXPECT_THAT(values(batch.input.lengths), ElementsAre(4, 5, 2));
  EXPECT_FALSE(batch.positions.defined());
  EXPECT_THAT(values(batch.targets), ElementsAre(1, 0, 2));
  EXPECT_EQ(batch.tokens, 11);

  const auto decoder =
      classification_batches(texts, torch::tensor({1, 0, 2}), 5, ClassPosition::last, all_special, options);
  batch = decoder->batch(0, 0);
  EXPECT_THAT(values(batch.input.ids), ElementsAre(10, 11, 3, 0, 0, 12, 13, 14, 15, 3, 3, 0, 0, 0, 0));
  EXPECT_THAT(values(batch.positions), ElementsAre(2, 9, 10));
}

// The frame of a tokenizer of the Hub. Texts are cut, their frame is not.
TEST(Classification, LooksAtTheLastTokenOfAFrame) {
  const auto texts = TokenStore::from_rows({{10, 11}, {12, 13, 14, 15}, {}});
  const BatchOptions options{.batch_size = 3, .batch_tokens = {}, .order = Order::sequential};
  const auto batch_with = [&](const TextFrame& frame, const SpecialTokens& special) {
    return classification_batches(texts, torch::tensor({1, 0, 2}), 5, ClassPosition::last, special, options,
                                  frame)
        ->batch(0, 0);
  };
  auto batch = batch_with({.before = {8}, .between = {}, .after = {9}}, all_special);
  EXPECT_THAT(values(batch.input.ids), ElementsAre(8, 10, 11, 9, 0, 8, 12, 13, 14, 9, 8, 9, 0, 0, 0));
  EXPECT_THAT(values(batch.positions), ElementsAre(3, 9, 11));
  // Without a frame and without padding: a token for the empty text, and padding that nobody reads.
  batch = batch_with({}, {.eos = 7});
  EXPECT_THAT(values(batch.input.lengths), ElementsAre(2, 4, 1));
  EXPECT_THAT(values(batch.input.ids), ElementsAre(10, 11, 7, 7, 12, 13, 14, 15, 7, 7, 7, 7));
  EXPECT_THAT(values(batch.positions), ElementsAre(1, 7, 8));
}

TEST(Classification, LabelsStayWithTheirTexts) {
  const auto source =
      classification_batches(numbered_rows(500, 1), torch::arange(500), 20, ClassPosition::last, all_special,
                             {.batch_size = 10, .batch_tokens = {}});
  for (int64_t i = 0; i < source->n_batches(0); ++i) {
    const Batch batch = source->batch(0, i);
    EXPECT_TRUE(torch::equal(batch.input.ids.select(1, 0) - 1000, batch.targets));
  }
}

TEST(Classification, TextsAndLabelsMustCorrespond) {
  EXPECT_THROW(
      classification_batches(numbered_rows(3, 1), torch::arange(2), 20, ClassPosition::last, all_special, {}),
      DataError);
  EXPECT_THROW(
      classification_batches(TokenStore(), torch::arange(0), 20, ClassPosition::last, all_special, {}),
      DataError);
  EXPECT_THROW(
      classification_batches(numbered_rows(1, 1), torch::arange(1), 20, ClassPosition::first, {}, {}),
      DataError);
  EXPECT_THROW(text_to_text_batches(numbered_rows(3, 1), numbered_rows(2, 1), 9, 9, PairLayout::two_sides,
                                    all_special, {}),
               DataError);
}

/// A source that counts how often it is read, and notes what it is told to expect.
class CountingSource : public BatchSource {
 public:
  void expect(int64_t epoch, int64_t index) override { expected = {epoch, index}; }
  int64_t n_batches(int64_t) override { return 5; }
  Batch batch(int64_t epoch, int64_t index) override {
    ++n_read;
    Batch batch;
    batch.targets = torch::full({1000}, 10 * epoch + index);  // 8000 bytes
    return batch;
  }
  int64_t n_read = 0;
  std::pair<int64_t, int64_t> expected = {-1, -1};
};

// A step may accumulate the gradients of a million batches.
TEST(BatchSequence, KeepsOnlyTheFirstBatches) {
  CountingSource source;
  std::vector<BatchPosition> positions;
  for (int64_t i = 0; i < 4; ++i) positions.push_back({.epoch = 0, .index = i});
  const BatchSequence batches(source, positions, /*kept_bytes=*/15'000);
  EXPECT_EQ(source.n_read, 2);
  ASSERT_EQ(batches.size(), 4u);
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(batches[i].targets[0].item<int64_t>(), static_cast<int64_t>(i));
  }
  EXPECT_EQ(source.n_read, 2 + 2 * 2);
  EXPECT_EQ(batches.all().size(), 4u);
  EXPECT_THROW(batches[4], std::out_of_range);

  source.n_read = 0;
  BatchPosition position{.epoch = 0, .index = 3};
  const auto many = next_batches(source, position, 1'000'000);  // 8 GB
  EXPECT_LE(source.n_read, BatchSequence::kKeptBytes / 8000 + 1);
  EXPECT_EQ(many[2].targets[0].item<int64_t>(), 10);
  EXPECT_EQ(many[999'999].targets[0].item<int64_t>(), 10 * ((3 + 999'999) / 5) + (3 + 999'999) % 5);
  EXPECT_EQ(position.epoch, (3 + 999'999) / 5);
}

TEST(BatchSequence, SaysWhichBatchFollows) {
  CountingSource source;
  BatchPosition position;
  next_batches(source, position, 3);
  EXPECT_EQ(source.expected, std::pair(0L, 3L));
  next_batches(source, position, 2);
  EXPECT_EQ(source.expected, std::pair(1L, 0L)) << "the next epoch";
  next_batches(source, position, 1);
  EXPECT_EQ(source.expected, std::pair(1L, 1L));
}

// While the caller works with a batch, the expected one is made, and no other.
TEST(Prefetch, MakesEachBatchOnce) {
  auto counting = std::make_unique<CountingSource>();
  auto& source = *counting;
  const auto batches = prefetched(std::move(counting));
  for (const int64_t index : {1, 3, 0}) {
    batches->expect(2, index);
    batches->expect(2, index);
    EXPECT_EQ(batches->batch(2, index).targets[0].item<int64_t>(), 20 + index);
  }
  EXPECT_EQ(source.n_read, 3);
  EXPECT_EQ(batches->batch(0, 4).targets[0].item<int64_t>(), 4) << "an unexpected one";
  batches->expect(0, 1);
  EXPECT_EQ(batches->batch(0, 2).targets[0].item<int64_t>(), 2) << "another one than expected";
  EXPECT_EQ(batches->batch(0, 1).targets[0].item<int64_t>(), 1);
  EXPECT_EQ(source.n_read, 6);
}

}  // namespace
}  // namespace zoo
