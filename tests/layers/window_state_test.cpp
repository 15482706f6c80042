// What a window of keys remembers: its contents, its copies, and long reads after a prefix.

#include "layers/attention/window_state.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/attention.h"
#include "layers/attention/window_pattern.h"

namespace zoo {
namespace {

/// Keys (B, 2, n, 4) of a window; all numbers differ. Values have 6 numbers and the other sign.
KeysAndValues window_numbers(int64_t batch, int64_t n, double offset) {
  const auto keys = torch::arange(batch * 2 * n * 4, torch::kFloat).view({batch, 2, n, 4}) + offset;
  return {.keys = keys, .values = -torch::cat({keys, keys.narrow(3, 0, 2)}, 3)};
}

void expect_equal(const KeysAndValues& actual, const KeysAndValues& expected) {
  EXPECT_TRUE(torch::equal(actual.keys, expected.keys));
  EXPECT_TRUE(torch::equal(actual.values, expected.values));
}

TEST(WindowState, HoldsTheFirstAndTheMostRecentTokens) {
  WindowState state(2, {.first = 2, .recent = 5});
  const auto all = window_numbers(2, 60, 1);
  for (int64_t p = 0; p < 60; ++p) {
    state.write(all.keys.narrow(2, p, 1), all.values.narrow(2, p, 1), PositionRange(p, 1));
    const auto now = state.after(PositionRange(p, 1));
    std::vector<bool> found(60);
    for (int64_t column = 0; column < now.positions.size(1); ++column) {
      const int64_t position = now.positions[0][column].item<int64_t>();
      if (position < 0) continue;
      found[static_cast<size_t>(position)] = true;
      expect_equal({.keys = now.keys.select(2, column), .values = now.values.select(2, column)},
                   {.keys = all.keys.select(2, position), .values = all.values.select(2, position)});
    }
    for (int64_t position = 0; position <= p; ++position) {
      if (position < 2 || position > p - 5) {
        EXPECT_TRUE(found[static_cast<size_t>(position)]) << position << " of " << p;
      }
    }
  }
  EXPECT_EQ(state.bytes(), 2 * 2 * 7 * (4 + 6) * 4) << "seven places, however long the text is";
}

// The next token of one of them is not seen by the other.
TEST(WindowState, CopiesGoOnApart) {
  WindowState state(2, {.first = 1, .recent = 3});
  const auto first = window_numbers(2, 4, 1), next = window_numbers(2, 3, 1000);
  state.write(first.keys, first.values, PositionRange(0, 4));
  const auto copied = state.copy();
  auto& copy = dynamic_cast<WindowState&>(*copied);
  EXPECT_EQ(copy.bytes(), state.bytes());
  const auto before = state.after(PositionRange(3, 1));
  const KeysAndValues kept{.keys = before.keys.clone(), .values = before.values.clone()};
  for (int64_t i = 0; i < 3; ++i)
    copy.write(next.keys.narrow(2, i, 1), next.values.narrow(2, i, 1), PositionRange(4 + i, 1));
  const auto unchanged = state.after(PositionRange(3, 1));
  expect_equal({.keys = unchanged.keys, .values = unchanged.values}, kept);
  const auto changed = copy.after(PositionRange(6, 1));
  EXPECT_FALSE(torch::equal(changed.keys, kept.keys));
  EXPECT_FALSE(torch::equal(changed.values, kept.values));

  const auto again = copy.copy();
  state.write(next.keys.narrow(2, 0, 1), next.values.narrow(2, 0, 1), PositionRange(4, 1));
  const auto still = dynamic_cast<WindowState&>(*again).after(PositionRange(6, 1));
  expect_equal({.keys = still.keys, .values = still.values},
               {.keys = changed.keys, .values = changed.values});
}

TEST(WindowState, ReorderedRowsTakeKeysAndValuesAlong) {
  WindowState state(3, {.first = 1, .recent = 3});
  const auto first = window_numbers(3, 4, 1);
  state.write(first.keys, first.values, PositionRange(0, 4));
  const auto rows = torch::tensor({2, 0, 2, 2});
  state.reorder(rows);
  const auto now = state.of_equal_rows(4);
  expect_equal(now, {.keys = first.keys.index_select(0, rows), .values = first.values.index_select(0, rows)});
}

/// An attention with a window, and its state.
struct WindowedAttention {
  Attention attention{nullptr};
  torch::Tensor x;  // (2, 330, 12)
  explicit WindowedAttention(const WindowOptions& window) {
    torch::manual_seed(6);
    attention = Attention(
        AttentionOptions(12, 3).pattern(std::make_shared<WindowPattern>(Direction::causal, window)));
    attention->eval();
    x = torch::randn({2, 330, 12});
  }
  torch::Tensor whole(int64_t row, int64_t length) {
    const PositionRange range(0, length);
    return attention(x.narrow(0, row, 1).narrow(1, 0, length), {.mask = Mask::causal(), .range = &range});
  }
};

// Reads are cut into parts of 256 tokens; each part goes on where the one before it ended.
TEST(WindowState, LongReadsAfterAPrefixEqualOnePass) {
  const torch::NoGradGuard no_grad;
  for (const auto& window :
       {WindowOptions().size(4), WindowOptions().size(20).n_global(3), WindowOptions().size(3).dilation(5)}) {
    WindowedAttention w(window);
    for (const int64_t prefix : {1, 7, 40}) {
      const auto state = w.attention->new_state(2);
      for (const auto& [first, count] : {std::pair(int64_t{0}, prefix), {prefix, 330 - prefix}}) {
        const PositionRange range(first, count);
        const auto out = w.attention(w.x.narrow(1, first, count),
                                     {.mask = Mask::causal(), .state = state.get(), .range = &range});
        for (int64_t row = 0; row < 2; ++row) {
          const auto expected = w.whole(row, first + count).narrow(1, first, count);
          EXPECT_TRUE(torch::allclose(out.narrow(0, row, 1), expected, 1e-4, 1e-5))
              << "row " << row << ", " << count << " tokens after " << first;
        }
      }
    }
  }
}

// Each row begins at its own place, and one ends before the other.
TEST(WindowState, LongReadsOfUnequalRowsEqualOnePass) {
  const torch::NoGradGuard no_grad;
  for (const auto& window : {WindowOptions().size(4), WindowOptions().size(20).n_global(3)}) {
    WindowedAttention w(window);
    const auto state = w.attention->new_state(2);
    std::vector<int64_t> lengths = {0, 0};
    for (const auto& counts : std::vector<std::vector<int64_t>>{{9, 4}, {300, 280}, {1, 20}}) {
      const int64_t longest = std::max(counts[0], counts[1]);
      auto x = torch::zeros({2, longest, 12});
      for (int64_t row = 0; row < 2; ++row) {
        const auto b = static_cast<size_t>(row);
        x[row].narrow(0, 0, counts[b]).copy_(w.x[row].narrow(0, lengths[b], counts[b]));
      }
      const PositionRange range(lengths, counts, longest, torch::kCPU);
      const auto mask = lengths[0] == 0 ? Mask::causal() & Mask::lengths(torch::tensor(counts, torch::kInt64))
                                        : Mask::causal().from(range.offsets());
      const auto out = w.attention(x, {.mask = mask, .state = state.get(), .range = &range});
      for (int64_t row = 0; row < 2; ++row) {
        const auto b = static_cast<size_t>(row);
        const auto expected = w.whole(row, lengths[b] + counts[b]).narrow(1, lengths[b], counts[b]);
        EXPECT_TRUE(torch::allclose(out.narrow(0, row, 1).narrow(1, 0, counts[b]), expected, 1e-4, 1e-5))
            << "row " << row << ", " << counts[b] << " tokens after " << lengths[b];
        lengths[b] += counts[b];
      }
    }
  }
}

}  // namespace
}  // namespace zoo
