#pragma once
// The state that a layer keeps of the tokens that it has read, so that each call computes new tokens only. An
// attention keeps keys and values; a linear attention keeps a running state. The stack passes each layer
// its state and does not use the contents.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <torch/types.h>

#include "kernels/column_blocks.h"
#include "layers/attention/key_value_storage.h"
#include "layers/attention/positions.h"

namespace zoo {

class ColumnStorage;
class KeyValueState;
class WindowState;

/// The state of one layer for B rows. Each row has its own number of read tokens.
class LayerState {
 public:
  virtual ~LayerState() = default;
  /// This state as the keys and values of all tokens. Throws c10::Error if it is another one.
  virtual KeyValueState& key_values();
  /// This state as the keys and values of a window; null if it is another one.
  virtual WindowState* window() { return nullptr; }
  /// Row i becomes the previous row rows[i]; rows: (B') int64 on the state's device. This reorders and copies
  /// beams, and drops finished rows.
  virtual void reorder(const torch::Tensor& rows) = 0;
  /// Appends the rows of `other`, the state of the same layer for other rows.
  virtual void join(const LayerState& other) = 0;
  /// Row b has read from[b] tokens, and keeps only the first to[b] ≤ from[b]. Keys and values can be
  /// truncated anywhere, unless a window has overwritten some of them. A running state can only be kept or
  /// emptied. Otherwise throws c10::Error for 0 < to[b] < from[b]. A caller that needs an earlier state makes
  /// a copy() before.
  virtual void truncate(std::span<const int64_t> from, std::span<const int64_t> to) = 0;
  /// Whether rows can be truncated to any length.
  virtual bool keeps_every_token() const { return false; }
  virtual std::unique_ptr<LayerState> copy() const = 0;
  virtual int64_t bytes() const = 0;
  /// How keys and values are stored, chosen before anything is read. Throws UsageError for a format that this
  /// state does not have; by default every one but fp32.
  virtual void store_in(CacheFormat format);
};

/// The keys and values of a self-attention. The token of a row at position p is in column p, so rows of
/// unequal length begin in the same column. On a CPU they are in blocks that rows and copies share until one
/// of them goes on: see KeyValueStorage.
class KeyValueState final : public LayerState {
 public:
  explicit KeyValueState(int64_t n_rows) : n_rows_(n_rows) {}
  KeyValueState(const KeyValueState&) = delete;
  KeyValueState& operator=(const KeyValueState&) = delete;

  KeyValueState& key_values() override { return *this; }
  void store_in(CacheFormat format) override;
  /// Writes the keys (B, K, T, Dh) and values (B, K, T, Dv) of the tokens at `range`. Throws UsageError for a
  /// format other than fp32 on a GPU.
  void write(const KeysAndValues& tokens, const PositionRange& range);
  /// The same. Returns all columns up to range.n_keys(), (B, K, S, D). A mask must hide the columns behind
  /// the last token of each row. They are views, or the tokens themselves if nothing was read before; else
  /// copies.
  KeysAndValues extend(const torch::Tensor& keys, const torch::Tensor& values, const PositionRange& range);
  /// The first n columns, (B, K, n, D): views or copies.
  KeysAndValues columns(int64_t n) const { return storage_->columns(n); }
  /// The blocks of the rows for masks over n columns; nothing if they are not in blocks, or nothing is read.
  /// They are valid until the state changes.
  std::optional<ColumnBlocks> blocks(int64_t n) const;

  void reorder(const torch::Tensor& rows) override;
  void join(const LayerState& other) override;
  void truncate(std::span<const int64_t> from, std::span<const int64_t> to) override;
  bool keeps_every_token() const override { return true; }
  std::unique_ptr<LayerState> copy() const override;
  /// Blocks that rows of this state share count once.
  int64_t bytes() const override;

  /// Columns in use: the length of the longest row.
  int64_t n_columns() const;
  /// The storage, if it has all rows in one tensor; null if not, or before anything is read.
  ColumnStorage* slots();
  /// The first n columns of one row, which stay in the memory of this state until the row grows; slots() is
  /// not null.
  std::unique_ptr<LayerState> row(int64_t row, int64_t n);

 private:
  int64_t n_rows_;
  CacheFormat format_ = CacheFormat::fp32;
  std::unique_ptr<KeyValueStorage> storage_;  // null before anything is read
};

/// The keys and values that a cross-attention has computed from its memories. Several rows of the decoder may
/// use the same memory. Memories may have unequal lengths; states share them, and copy none.
class MemoryState final : public LayerState {
 public:
  /// One memory per row.
  explicit MemoryState(const KeysAndValues& memories);

  int64_t n_memories() const { return std::ssize(memories_); }
  /// S: the length of the longest memory.
  int64_t n_columns() const;
  /// (B, K, S, Dh) and (B, K, S, Dv), with zeros behind shorter memories. They are put together again after
  /// reorder() and join(), when they are asked for.
  const KeysAndValues& together() const;
  /// The memories as blocks; nothing if they are not float on a CPU, or need gradients.
  std::optional<ColumnBlocks> blocks() const;

  void reorder(const torch::Tensor& rows) override;
  void join(const LayerState& other) override;
  /// Does nothing: memories do not depend on the tokens that the decoder has read.
  void truncate(std::span<const int64_t>, std::span<const int64_t>) override {}
  bool keeps_every_token() const override { return true; }
  std::unique_ptr<LayerState> copy() const override;
  /// A memory that is there several times counts once.
  int64_t bytes() const override;

 private:
  std::vector<KeysAndValues> memories_;            // (K, S, D) each
  mutable std::optional<KeysAndValues> together_;  // of one thread, like the whole state
};

}  // namespace zoo
