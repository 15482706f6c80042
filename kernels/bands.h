#pragma once
// Which keys each query sees, without a tensor of (query, key) pairs. A causal mask, a sliding window,
// strided and random patterns are all lists of bands, and one kernel computes attention over any list of
// bands.

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// The positions first, first + step, …, `count` of them.
struct Progression {
  int64_t first = 0, step = 1, count = 0;

  int64_t operator[](int64_t i) const { return first + i * step; }
};

/// Query number i of `queries` sees the keys number i + low … i + high - 1 of `keys`, if there are such keys.
/// With low = -w and high = w + 1, this is a sliding window of w keys on each side.
struct Band {
  Progression queries, keys;
  int64_t low = 0, high = 0;

  /// Every query sees every key.
  static Band all(Progression queries, Progression keys) {
    return {.queries = queries, .keys = keys, .low = -queries.count, .high = keys.count};
  }
  /// The numbers of the keys that query number i sees: first_key(i) … end_key(i) - 1.
  int64_t first_key(int64_t i) const { return clamped(i + low); }
  int64_t end_key(int64_t i) const { return clamped(i + high); }
  /// The same band without the keys at positions from `n_keys` on.
  Band before(int64_t n_keys) const;
  /// The number of visible pairs.
  int64_t n_pairs() const;

 private:
  int64_t clamped(int64_t j) const { return j < 0 ? 0 : j > keys.count ? keys.count : j; }
};

/// Bands with no pair in common.
using Bands = std::vector<Band>;

/// The pairs of `bands` whose key is not after its query. If the steps of queries and keys of a band differ,
/// no key may be between its queries: throws c10::Error otherwise.
Bands causal(const Bands& bands);

int64_t n_pairs(const Bands& bands);

/// (T, S) bool on the CPU: the visible pairs. For small T and S: attention maps and tests.
torch::Tensor visible_pairs(const Bands& bands, int64_t n_queries, int64_t n_keys);

/// The visible pairs of each row of a batch.
struct VisiblePairs {
  /// One for each row, or one for all rows.
  std::vector<std::shared_ptr<const Bands>> rows;
  /// (B) int64: row b has no keys from lengths[b] on; undefined = every row has all keys.
  torch::Tensor lengths = {};

  VisiblePairs(Bands bands, torch::Tensor row_lengths = {})
      : rows{std::make_shared<const Bands>(std::move(bands))}, lengths(std::move(row_lengths)) {}
  explicit VisiblePairs(std::vector<std::shared_ptr<const Bands>> bands, torch::Tensor row_lengths = {})
      : rows(std::move(bands)), lengths(std::move(row_lengths)) {}

  const Bands& row(int64_t b) const { return *rows[rows.size() == 1 ? 0 : static_cast<size_t>(b)]; }
};

}  // namespace zoo
