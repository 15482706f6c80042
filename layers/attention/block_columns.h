#pragma once
// Keys and values in blocks that rows share (Kwon et al. 2023, "PagedAttention"): reordering, copying and
// joining rows copies lists of blocks, and growing copies nothing. A row that goes on after columns which it
// shares copies at most the last of their blocks, if it is partly filled.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <torch/types.h>

#include "kernels/cache_format.h"
#include "kernels/column_blocks.h"
#include "layers/attention/key_value_storage.h"

namespace zoo {

/// The format and the sizes of keys and values, which all rows share.
struct ColumnShape {
  CacheFormat format = CacheFormat::fp32;
  int64_t n_heads = 0, key_width = 0, value_width = 0;  // K, Dh, Dv
};

/// Memory for the keys and values of consecutive columns of one row.
class ColumnRun {
 public:
  /// `capacity`: columns, a multiple of kBlockColumns.
  ColumnRun(const ColumnShape& shape, int64_t capacity);

  int64_t capacity() const { return capacity_; }
  const StoredHeads& keys() const { return key_heads_; }
  const StoredHeads& values() const { return value_heads_; }
  /// (K, capacity, D), in the type of the format.
  const torch::Tensor& key_numbers() const { return keys_; }
  const torch::Tensor& value_numbers() const { return values_; }
  int64_t bytes() const;

 private:
  int64_t capacity_;
  torch::Tensor keys_, values_;              // (K, capacity, D)
  torch::Tensor key_scales_, value_scales_;  // (K, capacity) float; undefined except for int8
  StoredHeads key_heads_, value_heads_;      // where these are
};

/// The columns of one row: parts of runs, one after the other. A copy shares the runs. Only the sole owner of
/// a run writes into it.
class RowColumns {
 public:
  int64_t size() const { return size_; }
  void truncate(int64_t size);
  /// Makes `count` columns from column `first` on the last ones of the row, and its own. Columns between the
  /// row's end and `first` become zeros. Their contents are for the caller to write.
  void make_room(const ColumnShape& shape, int64_t first, int64_t count);
  /// Writes one head of the last `n` columns, for which there is room. keys, values: of this head.
  void write(const ColumnShape& shape, int64_t head, int64_t n, const StoredHeads& keys,
             const StoredHeads& values);
  /// Copies one head of the first `n` columns to fp32 vectors. Columns that the row does not have become
  /// zeros.
  void read(const ColumnShape& shape, int64_t head, int64_t n, const StoredHeads& keys,
            const StoredHeads& values) const;
  /// Appends the blocks of the row.
  void append_blocks(std::vector<ColumnBlocks::Block>& to) const;

  /// The run that has all columns up to n; null if there is none.
  const ColumnRun* run_of_all(int64_t n) const;
  /// Calls visit(run) for each run.
  template <class Visit>
  void each_run(const Visit& visit) const {
    for (const auto& part : parts_) visit(*part.run);
  }

 private:
  /// The columns of the row from `first` on, up to the next part, are the first ones of the run.
  struct Part {
    std::shared_ptr<ColumnRun> run;
    int64_t first;  // a multiple of kBlockColumns
  };
  int64_t room() const { return parts_.empty() ? 0 : parts_.back().first + parts_.back().run->capacity(); }
  void own_last_block(const ColumnShape& shape, int64_t count);

  /// Calls visit(part, first, end) for the columns [first, end) of each part that lie in [begin, end).
  template <class Visit>
  void each_part(int64_t begin, int64_t end, const Visit& visit) const;

  std::vector<Part> parts_;
  int64_t size_ = 0;
};

/// Rows of float keys and values on a CPU.
class BlockColumns final : public KeyValueStorage {
 public:
  BlockColumns(int64_t n_rows, const ColumnShape& shape)
      : shape_(shape), rows_(static_cast<size_t>(n_rows)) {}

  void write(const KeysAndValues& tokens, const PositionRange& range) override;
  KeysAndValues columns(int64_t n) const override;
  bool has_views(int64_t n) const override;
  std::optional<ColumnBlocks> blocks(int64_t n) const override;
  int64_t n_columns() const override;
  void reorder(const torch::Tensor& rows) override;
  void join(const KeyValueStorage& other) override;
  void truncate(std::span<const int64_t> to) override;
  std::unique_ptr<KeyValueStorage> copy() const override { return std::make_unique<BlockColumns>(*this); }
  /// A run that several rows share counts once.
  int64_t bytes() const override;
  std::unique_ptr<KeyValueStorage> empty(int64_t n_rows) const override {
    return std::make_unique<BlockColumns>(n_rows, shape_);
  }

 private:
  template <class Visit>
  void each_head(int64_t n, const Visit& visit) const;

  ColumnShape shape_;
  std::vector<RowColumns> rows_;
};

}  // namespace zoo
