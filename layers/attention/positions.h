#pragma once
// The positions of the tokens of a call, and the absolute encodings that are added to embeddings. Relative
// encodings (rotary, biases, Shaw) are in other headers.

#include <array>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// The positions of the tokens that a call reads, in T columns. Either all rows have the same positions, or
/// each row begins at the number of tokens that it has read before. A row with fewer than T tokens is padded
/// on the right.
class PositionRange {
 public:
  PositionRange() = default;
  /// Positions first … first + count - 1 in every row.
  PositionRange(int64_t first, int64_t count) : first_(first), count_(count), n_keys_(first + count) {}
  /// Row b reads counts[b] ≤ count tokens from position before[b] on.
  PositionRange(std::span<const int64_t> before, std::span<const int64_t> counts, int64_t count,
                torch::Device device);

  /// One token a row, at positions that only the device knows: offsets (B) int64, each below n_keys.
  static PositionRange at(const torch::Tensor& offsets, int64_t n_keys);

  /// The columns `first` … `first` + `count` - 1 of this range.
  PositionRange part(int64_t first, int64_t count) const;

  /// Columns T.
  int64_t count() const { return count_; }
  /// S: one more than the last position of any token, at least 1. Keys have positions 0 … S-1.
  int64_t n_keys() const { return n_keys_; }
  /// Columns that a storage indexed by position needs, including padding.
  int64_t n_columns() const { return first_ + count_; }
  /// Whether rows differ in their first position or in their number of tokens.
  bool differs_by_row() const { return offsets_.defined(); }
  /// The position of column 0. If rows differ, the largest one.
  int64_t first() const { return first_; }
  /// (B) int64: the position of column 0 of each row; undefined unless differs_by_row().
  const torch::Tensor& offsets() const { return offsets_; }
  /// (B) int64: the number of tokens in each row; undefined = T in every row.
  const torch::Tensor& counts() const { return counts_; }
  /// (B, T) int64: the position of every column, padding included; undefined unless differs_by_row().
  const torch::Tensor& columns() const { return columns_; }
  /// The position of column 0 of row b, unless only the device knows it.
  int64_t first_of(int64_t b) const { return rows_.empty() ? first_ : rows_[static_cast<size_t>(b)].first; }
  /// The number of tokens in row b.
  int64_t count_of(int64_t b) const { return rows_.empty() ? count_ : rows_[static_cast<size_t>(b)].count; }
  /// (T) int64, or (B, T) if rows differ: the position of each token. Padding gets a valid position below S.
  torch::Tensor ids(torch::Device device) const;

 private:
  struct Row {
    int64_t first, count;
  };
  int64_t first_ = 0, count_ = 0, n_keys_ = 0;
  std::vector<Row> rows_;  // offsets and counts on the host; empty unless differs_by_row()
  torch::Tensor offsets_, counts_, columns_;
};

/// A table with one row per position, computed on demand; it has no parameters. Thread-safe.
class PositionTable {
 public:
  /// (n) int64 → (n, …), on the device of the positions.
  using Make = std::function<torch::Tensor(const torch::Tensor& positions)>;

  explicit PositionTable(Make make) : make_(std::move(make)) {}
  /// The rows of a range: (T, …), or (B, T, …) if its rows differ.
  torch::Tensor rows(const PositionRange& range, torch::Device device);
  /// The rows of positions 0 … n_positions-1, and perhaps more.
  torch::Tensor first_rows(int64_t n_positions, torch::Device device);

 private:
  Make make_;
  std::mutex mutex_;
  torch::Tensor rows_;
  std::vector<torch::Tensor> outgrown_;  // kept, because a recorded CUDA graph may still read them
};

/// The order of sines and cosines in a vector of sinusoidal positions.
///   interleaved  sine and cosine of each rate beside each other (Vaswani et al. 2017)
///   half         all sines, then all cosines, as the authors' code and Marian have them
///   half_closed  as half, but the rates end at 1/base: base^(-i/(D/2 - 1)), as in fairseq and M2M100
enum class SinusoidLayout { interleaved, half, half_closed };
constexpr auto config_names(SinusoidLayout) {
  return std::to_array<std::string_view>({"interleaved", "half", "half_closed"});
}

/// PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)) (Vaswani et al. 2017,
/// section 3.5), or the same numbers in another order. positions: any shape (…), int64 or float. Returns
/// (…, D) float32. D ≥ 1 may be odd; half_closed: even, at least 4.
torch::Tensor sinusoidal_positions(const torch::Tensor& positions, int64_t d_model, double base = 10000.0,
                                   SinusoidLayout layout = SinusoidLayout::interleaved);

/// The positions of a grid of H × W places, such as the patches of an image, row by row: (H·W, D) float32.
/// The first half of a vector encodes the place's row, the second half its column, both with sinusoids
/// (Carion et al. 2020, DETR). D must be even.
torch::Tensor grid_positions(int64_t height, int64_t width, int64_t d_model, double base = 10000.0);
/// The same for places with these coordinates: rows (…, H), columns (…, W) float → (…, H·W, D).
torch::Tensor grid_positions(const torch::Tensor& rows, const torch::Tensor& columns, int64_t d_model,
                             double base = 10000.0);

}  // namespace zoo
