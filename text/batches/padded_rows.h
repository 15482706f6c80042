#pragma once
// Sequences of unequal length as one tensor.

#include <cstdint>
#include <span>
#include <vector>

#include <torch/types.h>

#include "data/batch.h"

namespace zoo {

/// Rows of ids in one (B, T) tensor, padded with `pad`. The caller fills each row up to its length.
class PaddedRows {
 public:
  PaddedRows(const std::vector<int64_t>& lengths, int64_t pad);
  int64_t* row(int64_t b) { return data_ + b * width_; }
  bool padded() const { return padded_; }
  int64_t width() const { return width_; }
  TokenBatch batch() const { return {ids_, lengths_}; }

 private:
  torch::Tensor ids_;      // (B, T)
  torch::Tensor lengths_;  // (B); undefined if no row is padded
  int64_t* data_ = nullptr;
  int64_t width_ = 0;
  bool padded_ = false;
};

/// The rows as one batch.
TokenBatch padded(const std::vector<std::vector<int64_t>>& rows, int64_t pad);

/// The rows with these numbers.
std::vector<std::vector<int64_t>> rows_at(const std::vector<std::vector<int64_t>>& rows,
                                          std::span<const int64_t> numbers);

/// An uninitialised int64 tensor (n).
torch::Tensor int64_tensor(int64_t n);
/// These values as an int64 tensor (n).
torch::Tensor int64_tensor(std::span<const int64_t> values);
/// The values of an int64 tensor, on any device.
std::vector<int64_t> int64_values(const torch::Tensor& tensor);

}  // namespace zoo
