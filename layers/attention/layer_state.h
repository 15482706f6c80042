#pragma once
// The state that a layer keeps of the tokens that it has read, so that each call computes new tokens only. An
// attention keeps keys and values; a linear attention keeps a running state. The stack passes each layer
// its state and does not use the contents.

#include <cstdint>
#include <memory>
#include <span>

#include <torch/types.h>

#include "layers/positions/positions.h"

namespace zoo {

/// The state of one layer for B rows. Each row has its own number of read tokens.
class LayerState {
 public:
  virtual ~LayerState() = default;
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
};

/// Keys (B, K, S, Dh) and values (B, K, S, Dv).
struct KeysAndValues {
  torch::Tensor keys, values;
};

/// The keys and values of a self-attention. The token of a row at position p is in column p, so rows of
/// unequal length begin in the same column. Storage grows by doubling: most calls copy new tokens only.
class KeyValueState final : public LayerState {
 public:
  explicit KeyValueState(int64_t n_rows) : n_rows_(n_rows) {}

  /// Writes the keys (B, K, T, Dh) and values (B, K, T, Dv) of the tokens at `range`. Returns views of all
  /// columns up to range.n_keys(). A mask must hide the columns behind the last token of each row.
  KeysAndValues extend(const torch::Tensor& keys, const torch::Tensor& values, const PositionRange& range);

  void reorder(const torch::Tensor& rows) override;
  void join(const LayerState& other) override;
  void truncate(std::span<const int64_t> from, std::span<const int64_t> to) override;
  bool keeps_every_token() const override { return true; }
  std::unique_ptr<LayerState> copy() const override;
  int64_t bytes() const override;

  /// Columns in use: the length of the longest row.
  int64_t n_columns() const { return n_columns_; }

 private:
  int64_t n_rows_;
  torch::Tensor keys_, values_;  // (B, K, capacity, Dh); undefined before anything is read
  int64_t n_columns_ = 0;
};

/// The keys and values that a cross-attention has computed from its memories. It has one row per memory.
/// Several rows of the decoder may use the same memory.
class MemoryState final : public LayerState {
 public:
  explicit MemoryState(KeysAndValues memory) : memory_(std::move(memory)) {}

  const torch::Tensor& keys() const { return memory_.keys; }
  const torch::Tensor& values() const { return memory_.values; }
  int64_t n_memories() const { return memory_.keys.size(0); }

  void reorder(const torch::Tensor& rows) override;
  /// Pads shorter memories on the right.
  void join(const LayerState& other) override;
  /// Does nothing: memories do not depend on the tokens that the decoder has read.
  void truncate(std::span<const int64_t>, std::span<const int64_t>) override {}
  bool keeps_every_token() const override { return true; }
  std::unique_ptr<LayerState> copy() const override;
  int64_t bytes() const override;

 private:
  KeysAndValues memory_;
};

}  // namespace zoo
