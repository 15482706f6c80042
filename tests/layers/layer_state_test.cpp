#include "layers/attention/layer_state.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/named_enum.h"
#include "kernels/few_queries.h"
#include "layers/attention/column_storage.h"

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

  EXPECT_EQ(state.bytes(), 2 * bytes_of_row) << "copies of a row share its columns";

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

/// The vectors of tokens, each with others: (2, n, 4) and (2, n, 6).
KeysAndValues vectors_of(const std::vector<int64_t>& tokens) {
  const auto offsets = 100 * torch::tensor(tokens, torch::kInt64).to(torch::kFloat).view({1, -1, 1});
  return {.keys = torch::arange(8, torch::kFloat).view({2, 1, 4}) + offsets,
          .values = torch::arange(12, torch::kFloat).view({2, 1, 6}) - offsets};
}

/// Several states that share blocks, and the tokens that each row of each should have.
class StatesAndTokens {
 public:
  using Rows = std::vector<std::vector<int64_t>>;

  explicit StatesAndTokens(uint64_t seed) : draws_(seed) { begin(); }

  void step() {
    auto& chosen = pairs_[below(std::ssize(pairs_))];
    switch (below(6)) {
      case 0:
        return reorder(chosen);
      case 1:
        return truncate(chosen);
      case 2:
        return copy(chosen);
      case 3:
        return join(chosen);
      default:
        return read(chosen);
    }
  }

  void expect_tokens() const {
    for (const auto& [state, rows] : pairs_) {
      const auto blocks = state->blocks(state->n_columns());
      if (!blocks) {
        for (const auto& row : rows) ASSERT_TRUE(row.empty());
        continue;
      }
      ASSERT_EQ(blocks->lengths.size(), rows.size());
      const auto all = state->columns(state->n_columns());
      for (size_t b = 0; b < rows.size(); ++b) {
        ASSERT_EQ(blocks->lengths[b], std::ssize(rows[b]));
        const auto expected = vectors_of(rows[b]);
        const auto row = static_cast<int64_t>(b), n = std::ssize(rows[b]);
        ASSERT_TRUE(torch::equal(all.keys[row].narrow(1, 0, n), expected.keys)) << "row " << b;
        ASSERT_TRUE(torch::equal(all.values[row].narrow(1, 0, n), expected.values)) << "row " << b;
      }
      expect_attention_over_blocks(*blocks, all);
    }
  }

 private:
  struct Pair {
    std::unique_ptr<KeyValueState> state;
    Rows rows;
  };

  size_t below(int64_t n) { return static_cast<size_t>(draws_() % static_cast<uint64_t>(n)); }

  void begin() {
    const size_t n = 1 + below(3);
    keep({std::make_unique<KeyValueState>(static_cast<int64_t>(n)), Rows(n)});
  }

  void read(Pair& pair) {
    const auto n_rows = std::ssize(pair.rows);
    const int64_t most = below(4) == 0 ? 40 : 2;
    Lengths before, counts;
    for (const auto& row : pair.rows) {
      before.push_back(std::ssize(row));
      counts.push_back(static_cast<int64_t>(below(most + 1)));
    }
    const int64_t count = std::max<int64_t>(1, std::ranges::max(counts));
    auto keys = torch::full({n_rows, 2, count, 4}, -1e6), values = torch::full({n_rows, 2, count, 6}, -1e6);
    for (int64_t b = 0; b < n_rows; ++b) {
      std::vector<int64_t> tokens(static_cast<size_t>(counts[static_cast<size_t>(b)]));
      for (auto& token : tokens) token = n_tokens_++;
      const auto vectors = vectors_of(tokens);
      keys[b].narrow(1, 0, std::ssize(tokens)).copy_(vectors.keys);
      values[b].narrow(1, 0, std::ssize(tokens)).copy_(vectors.values);
      auto& row = pair.rows[static_cast<size_t>(b)];
      row.insert(row.end(), tokens.begin(), tokens.end());
    }
    pair.state->write({.keys = keys, .values = values}, PositionRange(before, counts, count, torch::kCPU));
  }

  void reorder(Pair& pair) {
    std::vector<int64_t> order(1 + below(5));
    Rows reordered;
    for (auto& row : order) {
      row = static_cast<int64_t>(below(std::ssize(pair.rows)));
      reordered.push_back(pair.rows[static_cast<size_t>(row)]);
    }
    pair.state->reorder(torch::tensor(order));
    pair.rows = std::move(reordered);
  }

  void truncate(Pair& pair) {
    Lengths from, to;
    for (auto& row : pair.rows) {
      from.push_back(std::ssize(row));
      const int64_t cut = below(2) == 0 ? std::min<int64_t>(3, from.back()) : from.back();
      to.push_back(from.back() - static_cast<int64_t>(below(cut + 1)));
      row.resize(static_cast<size_t>(to.back()));
    }
    pair.state->truncate(from, to);
  }

  void copy(const Pair& pair) {
    auto other = pair.state->copy();
    Pair copied{std::unique_ptr<KeyValueState>(dynamic_cast<KeyValueState*>(other.release())), pair.rows};
    keep(std::move(copied));
  }

  void join(Pair& pair) {
    auto& other = pairs_[below(std::ssize(pairs_))];
    if (&other == &pair) return begin();
    if (pair.rows.size() + other.rows.size() > 8) return;
    pair.state->join(*other.state);
    pair.rows.insert(pair.rows.end(), other.rows.begin(), other.rows.end());
  }

  void keep(Pair pair) {
    pairs_.push_back(std::move(pair));
    if (pairs_.size() > 4) pairs_.erase(pairs_.begin() + static_cast<ptrdiff_t>(below(4)));
  }

  /// Attention over blocks has the bits of attention over plain tensors, row by row.
  static void expect_attention_over_blocks(const ColumnBlocks& blocks, const KeysAndValues& all) {
    const auto n_rows = std::ssize(blocks.lengths);
    const auto queries = torch::sin(torch::arange(n_rows * 16, torch::kFloat)).view({n_rows, 4, 1, 4});
    const auto found = few_queries_attention(queries, blocks, {.scale = 1e-3});
    for (int64_t b = 0; b < n_rows; ++b) {
      const auto row = [&](const torch::Tensor& x) {
        return x.narrow(0, b, 1).narrow(2, 0, blocks.lengths[static_cast<size_t>(b)]).contiguous();
      };
      const auto alone =
          few_queries_attention(queries.narrow(0, b, 1), row(all.keys), row(all.values), {.scale = 1e-3});
      ASSERT_TRUE(torch::equal(found.narrow(0, b, 1), alone)) << "row " << b;
    }
  }

  std::mt19937_64 draws_;
  std::vector<Pair> pairs_;
  int64_t n_tokens_ = 1;
};

TEST(KeyValueState, AnySequenceOfOperationsKeepsTheTokensOfEachRow) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    StatesAndTokens states(seed);
    for (int i = 0; i < 120; ++i) {
      states.step();
      states.expect_tokens();
      if (HasFatalFailure()) return;
    }
  }
}

int64_t bytes_of_columns(int64_t n_columns) {
  return n_columns * 2 * (4 + 6) * static_cast<int64_t>(sizeof(float));
}

TEST(KeyValueState, CopiesOfARowShareAllButTheBlockThatTheyFill) {
  KeyValueState state(1);
  const auto prompt = numbered(1, 50, 0);  // 3 blocks and 2 columns
  state.extend(prompt.keys, prompt.values, PositionRange(0, 50));
  const int64_t bytes = state.bytes();
  EXPECT_EQ(bytes, bytes_of_columns(4 * kBlockColumns));

  state.reorder(torch::zeros({8}, torch::kInt64));
  EXPECT_EQ(state.bytes(), bytes);
  const auto next = numbered(8, 1, 700);
  state.extend(next.keys, next.values, PositionRange(50, 1));
  EXPECT_EQ(state.bytes(), bytes + 8 * bytes_of_columns(kBlockColumns));

  const auto copied = state.copy();
  EXPECT_EQ(copied->bytes(), state.bytes());
}

TEST(KeyValueState, RowsThatEndWithAWholeBlockShareIt) {
  KeyValueState state(1);
  const auto prompt = numbered(1, 2 * kBlockColumns, 0);
  state.extend(prompt.keys, prompt.values, PositionRange(0, 2 * kBlockColumns));
  const auto* const keys = state.columns(1).keys.data_ptr();
  state.reorder(torch::tensor({0, 0}));
  const auto next = numbered(2, 1, 300);
  const auto all = state.extend(next.keys, next.values, PositionRange(2 * kBlockColumns, 1));
  EXPECT_EQ(state.bytes(), bytes_of_columns(4 * kBlockColumns));
  for (int64_t b = 0; b < 2; ++b) {
    const auto row = torch::tensor({b});
    expect_same(columns_of(rows_of(all, row), 0, 2 * kBlockColumns), prompt);
    expect_same(columns_of(rows_of(all, row), 2 * kBlockColumns, 1), rows_of(next, row));
  }
  const auto blocks = *state.blocks(state.n_columns());
  EXPECT_EQ(blocks.blocks[0].keys.numbers, static_cast<const void*>(keys));
  EXPECT_EQ(blocks.blocks[3].keys.numbers, static_cast<const void*>(keys));
}

// Another type of numbers is kept in one tensor, as on a GPU.
TEST(KeyValueState, OtherTypesAreKeptInOneTensor) {
  KeyValueState state(2), other(1);
  const auto as_double = [](const KeysAndValues& x) {
    return KeysAndValues{.keys = x.keys.to(torch::kDouble), .values = x.values.to(torch::kDouble)};
  };
  const auto first = as_double(numbered(2, 40, 0)), more = as_double(numbered(1, 3, 900));
  expect_same(state.extend(first.keys, first.values, PositionRange(0, 40)), first);
  EXPECT_FALSE(state.blocks(40));
  state.reorder(torch::tensor({1, 0, 1}));
  const auto kept = rows_of(first, torch::tensor({1, 0, 1}));
  expect_same(state.columns(40), kept);
  other.extend(more.keys, more.values, PositionRange(0, 3));
  const auto copied = state.copy();
  const auto last = as_double(numbered(3, 2, 700));
  state.extend(last.keys, last.values, PositionRange(38, 2));  // overwrites columns that both have
  state.truncate(Lengths{40, 40, 40}, Lengths{2, 5, 1});
  state.join(other);
  expect_same(columns_of(rows_of(state.columns(5), torch::tensor({3})), 0, 3), more);
  expect_same(columns_of(rows_of(state.columns(5), torch::tensor({1})), 0, 5),
              columns_of(rows_of(kept, torch::tensor({1})), 0, 5));
  expect_same(dynamic_cast<KeyValueState&>(*copied).columns(40), kept);
}

/// Vectors with numbers of different size. (B, 2, n, D)
KeysAndValues drawn_vectors(int64_t batch, int64_t n) {
  const auto draw = [&](int64_t width) {
    return torch::randn({batch, 2, n, width}) * torch::exp(2 * torch::randn({batch, 2, n, 1}));
  };
  return {.keys = draw(4), .values = draw(6)};
}

/// What int8 makes of vectors (…, D).
torch::Tensor in_int8(const torch::Tensor& x) {
  const auto scale = x.abs().amax(-1, true) / 127;
  return (x / scale).round().clamp(-127, 127) * scale;
}

KeysAndValues stored(const KeysAndValues& x, CacheFormat format) {
  if (format == CacheFormat::int8) return {.keys = in_int8(x.keys), .values = in_int8(x.values)};
  const auto rounded = [](const torch::Tensor& y) { return y.to(torch::kBFloat16).to(torch::kFloat); };
  return {.keys = rounded(x.keys), .values = rounded(x.values)};
}

TEST(KeyValueState, OtherFormatsRoundEachVector) {
  for (const auto format : {CacheFormat::bf16, CacheFormat::int8}) {
    SCOPED_TRACE(name_of(format));
    KeyValueState state(1);
    state.store_in(format);
    const auto all = drawn_vectors(2, 40);
    const auto first = columns_of(all, 0, 35), next = columns_of(all, 35, 5);
    expect_same(state.extend(first.keys, first.values, PositionRange(0, 35)), stored(first, format));
    const auto copied = state.copy();
    state.reorder(torch::tensor({1, 0, 1}));
    const auto order = torch::tensor({1, 0, 1});
    const auto more = rows_of(next, order);
    expect_same(state.extend(more.keys, more.values, PositionRange(35, 5)),
                stored(rows_of(all, order), format));
    expect_same(dynamic_cast<KeyValueState&>(*copied).columns(35), stored(first, format));
    // Two rows of 48 columns, and a block that each of the three rows has made its own.
    const int64_t numbers = 2 * (4 + 6),
                  bytes_of_column = format == CacheFormat::bf16 ? 2 * numbers : numbers + 4 * 4;
    EXPECT_EQ(state.bytes(), (2 * 48 + 3 * kBlockColumns) * bytes_of_column);

    const auto queries = torch::randn({3, 4, 2, 4});
    const auto found = few_queries_attention(queries, *state.blocks(40), {.scale = 0.5});
    const auto expected =
        few_queries_attention(queries, state.columns(40).keys, state.columns(40).values, {.scale = 0.5});
    EXPECT_LE((found - expected).abs().max().item<double>(), 1e-5 * expected.abs().max().item<double>());
  }
}

TEST(KeyValueState, Int8KeepsZerosAndWhatIsNotANumber) {
  KeyValueState state(1);
  state.store_in(CacheFormat::int8);
  auto [keys, values] = drawn_vectors(1, 4);
  keys[0][1][2].zero_();
  keys[0][0][1][3] = std::numeric_limits<float>::infinity();
  values[0][1][3][0] = std::numeric_limits<float>::quiet_NaN();
  values[0][0][0].fill_(1e-43F);
  const auto all = state.extend(keys, values, PositionRange(0, 4));
  EXPECT_TRUE(torch::equal(all.keys[0][1][2], torch::zeros({4})));
  EXPECT_TRUE(all.keys[0][0][1].isnan().all().item<bool>());
  EXPECT_TRUE(all.values[0][1][3].isnan().all().item<bool>());
  EXPECT_LE(all.values[0][0][0].abs().max().item<float>(), 2e-43F);
  EXPECT_EQ(all.keys.isnan().sum().item<int64_t>(), 4);
}

void expect_memory(const MemoryState& state, const KeysAndValues& expected) {
  expect_same(state.together(), expected);
  EXPECT_EQ(state.n_memories(), expected.keys.size(0));
  EXPECT_EQ(state.n_columns(), expected.keys.size(2));
}

ColumnStorage storage_with(const KeysAndValues& tokens) {
  ColumnStorage result(tokens.keys.size(0), tokens);
  result.write(tokens, PositionRange(0, tokens.keys.size(2)));
  return result;
}

// Rows of several storages go to slots that others have left, in one call as in one call for each.
TEST(ColumnStorage, PlacesManyRowsAsOneAfterTheOther) {
  const auto first = storage_with(numbered(3, 5, 7)), second = storage_with(numbered(1, 2, 100));
  const auto before = numbered(4, 9, 1000);
  auto together = storage_with(before), apart = storage_with(before);
  const std::vector<PlacedRow> rows = {{.from = &first, .row = 2, .n = 4},
                                       {.from = &second, .row = 0, .n = 2},
                                       {.from = &first, .row = 0, .n = 1}};
  const std::vector<int64_t> slots = {3, 0, 1};
  for (size_t i = 0; i < rows.size(); ++i) apart.place(slots[i], *rows[i].from, rows[i].row, rows[i].n);
  together.place(rows, column_places(slots, std::vector<int64_t>{4, 2, 1}, torch::kCPU));
  expect_same(together.columns(9), apart.columns(9));
  EXPECT_TRUE(torch::equal(together.columns(9).keys[2], before.keys[2])) << "the slot of another row";
}

// A row in the memory of several goes on without a trace in the others.
TEST(ColumnStorage, ARowGoesOnApartFromTheMemoryThatItWasIn) {
  const auto tokens = numbered(3, 4, 0);
  auto all = storage_with(tokens);
  const auto row = all.row(1, 3);
  const auto next = numbered(1, 1, 500);
  row->write(next, PositionRange(3, 1));
  expect_same(all.columns(4), tokens);
  expect_same(columns_of(row->columns(4), 0, 3), columns_of(rows_of(tokens, torch::tensor({1})), 0, 3));
  expect_same(columns_of(row->columns(4), 3, 1), next);
}

TEST(MemoryState, HoldsWhatItWasGiven) {
  const auto memory = numbered(3, 5, 0);
  MemoryState state(memory);
  expect_memory(state, memory);
  state.truncate(Lengths{4, 4, 4}, Lengths{0, 2, 4});  // the decoder's tokens, not the memory's
  expect_memory(state, memory);
  EXPECT_EQ(state.bytes(), static_cast<int64_t>(memory.keys.nbytes() + memory.values.nbytes()));
}

TEST(MemoryState, ReorderCopiesAndDropsMemories) {
  const auto memory = numbered(3, 5, 0);
  MemoryState state(memory);
  const auto rows = torch::tensor({2, 2, 0, 2});
  const int64_t bytes_of_memory = state.bytes() / 3;
  state.reorder(rows);
  expect_memory(state, rows_of(memory, rows));
  EXPECT_EQ(state.bytes(), 2 * bytes_of_memory) << "rows share memories";
}

// Each memory is read where it is.
TEST(MemoryState, JoinedMemoriesAreReadWithoutCopies) {
  const auto shorter = numbered(2, 3, 0), longer = numbered(1, 40, 100);
  MemoryState state(shorter);
  state.join(MemoryState(longer));
  state.reorder(torch::tensor({2, 1, 0, 1}));
  const auto blocks = *state.blocks();
  EXPECT_EQ(blocks.lengths, (Lengths{40, 3, 3, 3}));
  EXPECT_EQ(blocks.n_columns, 40);
  EXPECT_EQ(blocks.blocks[0].keys.numbers, static_cast<const void*>(longer.keys.data_ptr()));
  EXPECT_EQ(blocks.blocks[4].values.numbers, static_cast<const void*>(shorter.values.data_ptr()));
  const auto queries = torch::randn({4, 4, 2, 4});
  const auto found = few_queries_attention(queries, blocks, {.scale = 1e-3});
  const auto expected = few_queries_attention(queries.narrow(0, 1, 1), shorter.keys.narrow(0, 1, 1),
                                              shorter.values.narrow(0, 1, 1), {.scale = 1e-3});
  EXPECT_TRUE(torch::equal(found.narrow(0, 1, 1), expected));
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
