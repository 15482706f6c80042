#pragma once
// How the keys and values of a self-attention are kept in memory: in blocks on a processor (block_columns.h),
// in one tensor elsewhere (column_storage.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <torch/types.h>

#include "kernels/column_blocks.h"
#include "layers/attention/positions.h"

namespace zoo {

/// Keys (B, K, S, Dh) and values (B, K, S, Dv).
struct KeysAndValues {
  torch::Tensor keys, values;
};

/// Keys and values of B rows. The token of a row at position p is in column p.
class KeyValueStorage {
 public:
  virtual ~KeyValueStorage() = default;
  /// Writes the keys (B, K, T, Dh) and values (B, K, T, Dv) of the tokens at `range`. Each row then ends with
  /// its last token in the range.
  virtual void write(const KeysAndValues& tokens, const PositionRange& range) = 0;
  /// The first n columns of all rows. The columns behind a row's last token hold any numbers, but no NaN of
  /// their own: a weight of zero does not hide one.
  virtual KeysAndValues columns(int64_t n) const = 0;
  /// Whether columns(n) are views.
  virtual bool has_views(int64_t n) const = 0;
  /// The blocks of the rows for masks over n columns; nothing if they are not in blocks.
  virtual std::optional<ColumnBlocks> blocks(int64_t n) const = 0;
  /// The length of the longest row.
  virtual int64_t n_columns() const = 0;

  // As in LayerState. `other` is of the same class.
  virtual void reorder(const torch::Tensor& rows) = 0;
  virtual void join(const KeyValueStorage& other) = 0;
  virtual void truncate(std::span<const int64_t> to) = 0;
  virtual std::unique_ptr<KeyValueStorage> copy() const = 0;
  virtual int64_t bytes() const = 0;
  /// A storage like this one for `n_rows` rows without columns.
  virtual std::unique_ptr<KeyValueStorage> empty(int64_t n_rows) const = 0;
};

}  // namespace zoo
