#pragma once
// Keys or values of several rows in one tensor, (B, K, columns, D), with room for more columns.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <torch/types.h>

#include "layers/attention/key_value_storage.h"

namespace zoo {

/// The first `n` columns of `x` in a storage of `capacity` columns, with zeros behind them. Columns that are
/// never written must not have a NaN, which would spread, because 0 · NaN is NaN.
torch::Tensor with_capacity(const torch::Tensor& x, int64_t n, int64_t capacity);

/// The rows of `a`, then the rows of `b`, padded with zeros to the same number of columns.
torch::Tensor joined_rows(const torch::Tensor& a, const torch::Tensor& b);

/// `n_rows` rows without columns, as `like` otherwise.
torch::Tensor rows_without_columns(int64_t n_rows, const torch::Tensor& like);

class ColumnStorage;

/// The first `n` columns of row `row` of a storage, which are copied to a slot of another one.
struct PlacedRow {
  const ColumnStorage* from;
  int64_t row, n;
};

/// Where the columns of rows are copied to: int64 tensors on the device, which serve all layers.
struct ColumnPlaces {
  torch::Tensor slots;                  // of the rows
  torch::Tensor column_slots, columns;  // of all columns, row after row
};
/// `slots` and `lengths`: of each row.
ColumnPlaces column_places(std::span<const int64_t> slots, std::span<const int64_t> lengths,
                           torch::Device device);

/// All rows in one tensor, as the attention of GPUs reads them. It grows by doubling: most calls copy new
/// tokens only. reorder(), join() and copy() copy all rows. Rows that come and go without such copies are in
/// slots (DecodingState::slots()).
class ColumnStorage final : public KeyValueStorage {
 public:
  /// `like`: keys (B, K, …, Dh) and values (B, K, …, Dv) that give shapes, type and device.
  ColumnStorage(int64_t n_rows, const KeysAndValues& like);

  void write(const KeysAndValues& tokens, const PositionRange& range) override;
  KeysAndValues columns(int64_t n) const override;
  bool has_views(int64_t) const override { return true; }
  std::optional<ColumnBlocks> blocks(int64_t) const override { return std::nullopt; }
  int64_t n_columns() const override { return n_columns_; }
  void reorder(const torch::Tensor& rows) override;
  void join(const KeyValueStorage& other) override;
  void truncate(std::span<const int64_t> to) override;
  std::unique_ptr<KeyValueStorage> copy() const override;
  int64_t bytes() const override;
  std::unique_ptr<KeyValueStorage> empty(int64_t n_rows) const override;

  /// Makes room for the tokens of `range`, which the caller writes, and counts them as read. The columns up
  /// to range.n_keys(), as columns() gives them.
  KeysAndValues room_for(const PositionRange& range);
  /// Makes room for so many rows and columns, which are zeros. Returns whether the memory has moved.
  bool reserve(int64_t n_rows, int64_t n_columns);
  /// From now on there are the first `n_rows` rows of those that are reserved.
  void use_rows(int64_t n_rows) { n_rows_ = n_rows; }
  /// Row `slot` gets the first `n` columns of row `row` of `from`, and zeros behind them.
  void place(int64_t slot, const ColumnStorage& from, int64_t row, int64_t n);
  /// The same for many rows in a few operations. `places`: those of `rows`.
  void place(std::span<const PlacedRow> rows, const ColumnPlaces& places);
  /// The first n columns of one row, in this memory until more columns are needed.
  std::unique_ptr<ColumnStorage> row(int64_t row, int64_t n) const;

 private:
  torch::Tensor keys_, values_;  // (reserved rows, K, capacity, D)
  int64_t n_rows_ = 0, n_columns_ = 0;
};

}  // namespace zoo
