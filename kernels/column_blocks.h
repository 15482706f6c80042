#pragma once
// Keys and values of earlier tokens as a cache has them on a processor. Each row of a batch has a list of
// blocks of columns, one column per token. Rows may share blocks. Numbers are stored in one of several
// formats.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "kernels/cache_format.h"
#include "kernels/isa/kernels.h"

namespace zoo {

/// Where vectors (K, columns, D) are in memory. The D numbers of a vector lie one after the other.
struct StoredHeads {
  CacheFormat format = CacheFormat::fp32;
  std::byte* numbers = nullptr;                // float, uint16_t (the upper half of a float) or int8_t
  int64_t head_stride = 0, column_stride = 0;  // in numbers
  float* scales = nullptr;  // int8: one for each vector, those of a head one after the other
  int64_t scale_head_stride = 0;

  /// The same from column `column` on.
  StoredHeads from(int64_t column) const;
  /// The same from head `head` on.
  StoredHeads of_head(int64_t head) const;
};

/// Float vectors of a tensor (K, columns, D) on the CPU, whose last dimension is contiguous.
StoredHeads heads_of(const torch::Tensor& x);
/// Those of row b of a tensor (B, K, columns, D).
StoredHeads heads_of_row(const torch::Tensor& x, int64_t b);

int64_t bytes_of_number(CacheFormat format);

/// Copies vectors (n_heads, n_columns, width) and converts them to the other format. bf16 rounds to the
/// nearest number, even if two are as near. int8 divides by the largest number of the vector / 127. A vector
/// with a number that is not finite becomes NaN in int8.
void copy_columns(const StoredHeads& from, const StoredHeads& to, int64_t n_heads, int64_t n_columns,
                  int64_t width);

/// The columns of B rows.
struct ColumnBlocks {
  struct Block {
    StoredHeads keys, values;  // kBlockColumns columns; in the last block of a row perhaps fewer
  };
  CacheFormat format = CacheFormat::fp32;
  int64_t n_heads = 0, key_width = 0, value_width = 0;  // K, Dh, Dv
  int64_t n_columns = 0;                                // S: of the longest row, or more
  int64_t key_stride = 0, value_stride = 0;             // from column to column, in numbers; in all blocks
  std::vector<Block> blocks = {};                       // of row 0, then of row 1, …
  std::vector<int64_t> first_blocks = {};               // (B): of each row
  std::vector<int64_t> lengths = {};                    // (B): the columns of each row

  /// Adds a row whose `length` columns lie one after the other.
  void add_row(const StoredHeads& keys, const StoredHeads& values, int64_t length);
};

}  // namespace zoo
