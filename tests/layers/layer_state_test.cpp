#include "layers/attention/layer_state.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace zoo {
namespace {

using Lengths = std::vector<int64_t>;

// (B, K, T, width); all numbers differ.
torch::Tensor numbers(int64_t batch, int64_t n, int64_t width, double offset) {
  return torch::arange(batch * 2 * n * width, torch::kFloat).view({batch, 2, n, width}) + offset;
}

KeysAndValues numbered(int64_t batch, int64_t n, double offset) {
  return {.keys = numbers(batch, n, 4, offset), .values = numbers(batch, n, 6, -offset - 1)};
}

KeysAndValues rows_of(const KeysAndValues& x, const torch::Tensor& rows) {
  return {.keys = x.keys.index_select(0, rows), .values = x.values.index_select(0, rows)};
}

KeysAndValues columns_of(const KeysAndValues& x, int64_t first, int64_t count) {
  return {.keys = x.keys.narrow(2, first, count), .values = x.values.narrow(2, first, count)};
}

void expect_same(const KeysAndValues& actual, const KeysAndValues& expected) {
  EXPECT_TRUE(torch::equal(actual.keys, expected.keys));
  EXPECT_TRUE(torch::equal(actual.values, expected.values));
}

/// The columns of a state of `n_rows` rows, as its next extend() returns them.
KeysAndValues columns_in_use(const KeyValueState& state, int64_t n_rows) {
  const auto copy = state.copy();
  const int64_t n = state.n_columns();
  const auto next = numbered(n_rows, 1, 0);
  return columns_of(dynamic_cast<KeyValueState&>(*copy).extend(next.keys, next.values, PositionRange(n, 1)),
                    0, n);
}

/// A state whose rows read different numbers of tokens in each call, and its expected contents.
class UnequalRows {
 public:
  static constexpr double kPadding = -1e6;

  /// `tokens`: the tokens of each row, in the order of reading.
  explicit UnequalRows(KeysAndValues tokens)
      : tokens_(std::move(tokens)), lengths_(static_cast<size_t>(tokens_.keys.size(0)), 0) {}

  /// Row b reads its next counts[b] tokens.
  void read(const Lengths& counts) {
    const int64_t count = std::ranges::max(counts);
    const PositionRange range(lengths_, counts, count, torch::kCPU);
    const auto keys = next_tokens(tokens_.keys, counts, count),
               values = next_tokens(tokens_.values, counts, count);
    const auto all = state.extend(keys, values, range);
    for (size_t b = 0; b < counts.size(); ++b) lengths_[b] += counts[b];
    EXPECT_EQ(all.keys.size(2), std::ranges::max(lengths_));
    expect_rows(all);
  }

  /// Keeps only the first lengths[b] tokens of row b.
  void truncate(const Lengths& lengths) {
    state.truncate(lengths_, lengths);
    lengths_ = lengths;
  }

  /// Each row has its token at position p in column p.
  void expect_rows(const KeysAndValues& all) const {
    for (size_t b = 0; b < lengths_.size(); ++b) {
      SCOPED_TRACE(::testing::Message() << "row " << b << " of " << lengths_[b] << " tokens");
      const auto row = torch::tensor({static_cast<int64_t>(b)});
      expect_same(columns_of(rows_of(all, row), 0, lengths_[b]),
                  columns_of(rows_of(tokens_, row), 0, lengths_[b]));
    }
  }

  KeysAndValues columns() const { return columns_in_use(state, std::ssize(lengths_)); }
  const Lengths& lengths() const { return lengths_; }

  KeyValueState state{1};

 private:
  torch::Tensor next_tokens(const torch::Tensor& tokens, const Lengths& counts, int64_t count) const {
    auto result = torch::full({tokens.size(0), tokens.size(1), count, tokens.size(3)}, kPadding);
    for (size_t b = 0; b < counts.size(); ++b) {
      const auto row = static_cast<int64_t>(b);
      result[row].narrow(1, 0, counts[b]).copy_(tokens[row].narrow(1, lengths_[b], counts[b]));
    }
    return result;
  }

  KeysAndValues tokens_;
  Lengths lengths_;
};

TEST(KeyValueState, ReturnsEverythingInOrderWhileStorageGrows) {
  KeyValueState state(1);
  EXPECT_EQ(state.n_columns(), 0);
  EXPECT_EQ(state.bytes(), 0);
  std::vector<torch::Tensor> keys, values;
  int64_t length = 0;
  for (const int64_t n : {5, 1, 1, 40, 1, 100}) {  // past several doublings
    keys.push_back(numbers(3, n, 4, 1000.0 * static_cast<double>(length)));
    values.push_back(numbers(3, n, 6, -1000.0 * static_cast<double>(length)));
    const auto all = state.extend(keys.back(), values.back(), PositionRange(length, n));
    length += n;
    EXPECT_EQ(state.n_columns(), length);
    expect_same(all, {.keys = torch::cat(keys, 2), .values = torch::cat(values, 2)});
  }
  EXPECT_GE(state.bytes(), static_cast<int64_t>(3 * 2 * length * (4 + 6) * sizeof(float)));
}

TEST(KeyValueState, ACallCopiesOnlyWhatIsNew) {
  KeyValueState state(1);
  const auto first = numbered(1, 3, 0), next = numbered(1, 1, 50);
  const auto* const storage = state.extend(first.keys, first.values, PositionRange(0, 3)).keys.data_ptr();
  EXPECT_EQ(state.extend(next.keys, next.values, PositionRange(3, 1)).keys.data_ptr(), storage);
}

TEST(KeyValueState, RowsOfUnequalLengthHaveEachTokenInTheColumnOfItsPosition) {
  UnequalRows rows(numbered(3, 80, 0));
  for (const auto& counts :
       {Lengths{5, 2, 0}, {1, 4, 3}, {0, 0, 1}, {2, 2, 2}, {30, 1, 2}, {2, 40, 1}, {0, 9, 0}})
    rows.read(counts);
  EXPECT_EQ(rows.lengths(), (Lengths{40, 58, 9}));
  EXPECT_EQ(rows.state.n_columns(), 58);
}

/// While it lives, uninitialised storage is filled with NaN.
class NanStorage {
 public:
  NanStorage() { context_.setDeterministicAlgorithms(true, /*warn_only=*/true); }
  ~NanStorage() { context_.setDeterministicAlgorithms(was_deterministic_, only_warned_); }
  NanStorage(const NanStorage&) = delete;
  NanStorage& operator=(const NanStorage&) = delete;

 private:
  at::Context& context_ = at::globalContext();
  bool was_deterministic_ = context_.deterministicAlgorithms();
  bool only_warned_ = context_.deterministicAlgorithmsWarnOnly();
};

// Columns behind a row's last token must hold numbers: a weight of zero does not hide a NaN.
TEST(KeyValueState, ColumnsWithoutATokenAreNumbers) {
  const NanStorage storage;
  ASSERT_TRUE(torch::empty({8}).isnan().all().item<bool>()) << "this test would notice nothing";
  const auto expect_finite = [](const KeysAndValues& all) {
    EXPECT_TRUE(all.keys.isfinite().all().item<bool>());
    EXPECT_TRUE(all.values.isfinite().all().item<bool>());
  };
  UnequalRows rows(numbered(2, 80, 0)), others(numbered(3, 80, 7));
  rows.read({1, 1});
  for (int64_t i = 0; i < 40; ++i) rows.read({1, 0});
  expect_finite(rows.columns());
  others.read({2, 2, 2});
  others.state.join(rows.state);
  expect_finite(columns_in_use(others.state, 5));
}

TEST(KeyValueState, ReorderCopiesAndDropsRows) {
  KeyValueState state(1);
  const auto first = numbered(3, 4, 0);
  state.extend(first.keys, first.values, PositionRange(0, 4));
  const auto rows = torch::tensor({2, 0, 2, 2});  // one beam is copied, another is dropped
  const int64_t bytes_of_row = state.bytes() / 3;
  state.reorder(rows);
  EXPECT_EQ(state.n_columns(), 4);
  const auto kept = rows_of(first, rows);
  expect_same(columns_in_use(state, 4), kept);

  EXPECT_EQ(state.bytes(), 4 * bytes_of_row)
      << "storage that shrinks would have to grow at every step of a beam search";

  const auto more = numbered(4, 1, 50);  // copies of a row are independent
  expect_same(
      state.extend(more.keys, more.values, PositionRange(4, 1)),
      {.keys = torch::cat({kept.keys, more.keys}, 2), .values = torch::cat({kept.values, more.values}, 2)});
}

TEST(KeyValueState, ReorderKeepsRowsOfUnequalLength) {
  UnequalRows rows(numbered(3, 80, 0));
  rows.read({5, 2, 0});
  rows.read({40, 2, 3});
  const auto order = torch::tensor({2, 1});
  rows.state.reorder(order);
  const auto kept = columns_in_use(rows.state, 2);
  for (const auto& [place, row, length] : {std::tuple<int64_t, int64_t, int64_t>{0, 2, 3}, {1, 1, 4}}) {
    expect_same(columns_of(rows_of(kept, torch::tensor({place})), 0, length),
                columns_of(rows_of(numbered(3, 80, 0), torch::tensor({row})), 0, length));
  }
}

TEST(KeyValueState, ReorderBeforeAnythingIsReadIsHarmless) {
  KeyValueState state(1);
  state.reorder(torch::tensor({0, 0}));
  EXPECT_EQ(state.n_columns(), 0);
  EXPECT_EQ(state.bytes(), 0);
  const auto first = numbered(2, 3, 0);
  expect_same(state.extend(first.keys, first.values, PositionRange(0, 3)), first);
}

// Each row is truncated to its own length, and continues from there.
TEST(KeyValueState, TruncatedRowsGoOnFromWhereTheyWereCut) {
  UnequalRows rows(numbered(3, 80, 0));
  rows.read({7, 4, 6});
  rows.truncate({6, 4, 0});
  EXPECT_EQ(rows.state.n_columns(), 6);
  rows.expect_rows(rows.columns());
  rows.read({1, 3, 2});
  rows.truncate({2, 1, 1});
  EXPECT_EQ(rows.state.n_columns(), 2);
  rows.expect_rows(rows.columns());
  rows.read({0, 50, 0});
  rows.read({3, 1, 1});
  EXPECT_EQ(rows.state.n_columns(), 52);

  rows.truncate({0, 0, 0});
  EXPECT_EQ(rows.state.n_columns(), 0);
  rows.read({2, 2, 2});
  EXPECT_EQ(rows.state.n_columns(), 2);
}

// Truncated tokens do not come back, although they may still be in the storage.
TEST(KeyValueState, ReadsOverWhatItHasForgotten) {
  KeyValueState state(1);
  const auto first = numbered(2, 6, 0), other = numbered(2, 3, 500);
  state.extend(first.keys, first.values, PositionRange(0, 6));
  state.truncate(Lengths{6, 6}, Lengths{2, 2});
  const auto kept = columns_of(first, 0, 2);
  expect_same(
      state.extend(other.keys, other.values, PositionRange(2, 3)),
      {.keys = torch::cat({kept.keys, other.keys}, 2), .values = torch::cat({kept.values, other.values}, 2)});
}

TEST(KeyValueState, JoinedRowsFollowTheirs) {
  for (const bool longer_first : {false, true}) {
    SCOPED_TRACE(longer_first);
    const auto all = numbered(5, 80, 0);
    const auto a_rows = torch::tensor({0, 1, 2}), b_rows = torch::tensor({3, 4});
    UnequalRows a(rows_of(all, a_rows)), b(rows_of(all, b_rows));
    a.read(longer_first ? Lengths{40, 3, 20} : Lengths{4, 3, 2});
    b.read(longer_first ? Lengths{2, 6} : Lengths{50, 6});
    const auto b_columns = b.columns();
    a.state.join(b.state);
    EXPECT_EQ(a.state.n_columns(), longer_first ? 40 : 50);
    const auto joined = columns_in_use(a.state, 5);
    a.expect_rows(rows_of(joined, a_rows));
    b.expect_rows(rows_of(joined, b_rows));

    // All rows continue together, each from its own position. The state that was joined is independent.
    Lengths lengths = a.lengths(), counts{1, 2, 0, 2, 1};
    lengths.insert(lengths.end(), b.lengths().begin(), b.lengths().end());
    auto keys = torch::zeros({5, 2, 2, 4}), values = torch::zeros({5, 2, 2, 6});
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      keys[row].narrow(1, 0, counts[i]).copy_(all.keys[row].narrow(1, lengths[i], counts[i]));
      values[row].narrow(1, 0, counts[i]).copy_(all.values[row].narrow(1, lengths[i], counts[i]));
    }
    const auto after = a.state.extend(keys, values, PositionRange(lengths, counts, 2, torch::kCPU));
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto row = torch::tensor({static_cast<int64_t>(i)});
      const int64_t length = lengths[i] + counts[i];
      expect_same(columns_of(rows_of(after, row), 0, length), columns_of(rows_of(all, row), 0, length));
    }
    expect_same(b.columns(), b_columns);
  }
}

TEST(KeyValueState, JoinsWhatHasForgottenEverything) {
  UnequalRows a(numbered(2, 80, 0)), b(numbered(1, 80, 9));
  a.read({3, 2});
  b.read({4});
  b.truncate({0});
  a.state.join(b.state);
  EXPECT_EQ(a.state.n_columns(), 3);
  a.expect_rows(rows_of(columns_in_use(a.state, 3), torch::tensor({0, 1})));
}

TEST(KeyValueState, CopiesGoOnApart) {
  UnequalRows rows(numbered(2, 80, 0));
  rows.read({3, 5});
  const auto before = rows.columns();
  const auto copied = rows.state.copy();
  auto& copy = dynamic_cast<KeyValueState&>(*copied);
  EXPECT_EQ(copy.bytes(), rows.state.bytes());
  EXPECT_EQ(copy.n_columns(), 5);

  const auto other = numbered(2, 4, 700);
  copy.extend(other.keys, other.values, PositionRange(1, 4));  // overwrites columns that both have
  expect_same(rows.columns(), before);
  rows.read({2, 1});
  EXPECT_EQ(copy.n_columns(), 5);
  expect_same(columns_of(columns_in_use(copy, 2), 1, 4), other);

  const auto fresh = KeyValueState(1).copy();
  EXPECT_EQ(fresh->bytes(), 0);
}

void expect_memory(const MemoryState& state, const KeysAndValues& expected) {
  expect_same({.keys = state.keys(), .values = state.values()}, expected);
  EXPECT_EQ(state.n_memories(), expected.keys.size(0));
  EXPECT_EQ(state.bytes(), static_cast<int64_t>(expected.keys.nbytes() + expected.values.nbytes()));
}

TEST(MemoryState, HoldsWhatItWasGiven) {
  const auto memory = numbered(3, 5, 0);
  MemoryState state(memory);
  expect_memory(state, memory);
  state.truncate(Lengths{4, 4, 4}, Lengths{0, 2, 4});  // the decoder's tokens, not the memory's
  expect_memory(state, memory);
}

TEST(MemoryState, ReorderCopiesAndDropsMemories) {
  const auto memory = numbered(3, 5, 0);
  MemoryState state(memory);
  const auto rows = torch::tensor({2, 2, 0, 2});
  state.reorder(rows);
  expect_memory(state, rows_of(memory, rows));
}

TEST(MemoryState, ShorterMemoriesArePaddedWhenTheyAreJoined) {
  const auto shorter = numbered(2, 3, 0), longer = numbered(3, 5, 100);
  const auto padded = [](const torch::Tensor& x) {
    return torch::cat({x, torch::zeros({x.size(0), x.size(1), 2, x.size(3)})}, 2);
  };
  const KeysAndValues wide{.keys = padded(shorter.keys), .values = padded(shorter.values)};
  MemoryState state(shorter), other(longer);
  state.join(other);
  expect_memory(state, {.keys = torch::cat({wide.keys, longer.keys}),
                        .values = torch::cat({wide.values, longer.values})});
  expect_memory(other, longer);
  other.join(MemoryState(shorter));
  expect_memory(other, {.keys = torch::cat({longer.keys, wide.keys}),
                        .values = torch::cat({longer.values, wide.values})});
}

TEST(MemoryState, CopiesGoOnApart) {
  const auto memory = numbered(3, 5, 0);
  MemoryState state(memory);
  const auto copied = state.copy();
  state.reorder(torch::tensor({1}));
  expect_memory(dynamic_cast<MemoryState&>(*copied), memory);
  copied->join(MemoryState(numbered(1, 2, 40)));
  expect_memory(state, rows_of(memory, torch::tensor({1})));
}

}  // namespace
}  // namespace zoo
