#pragma once
// The state of a mixer that remembers sums over the past in place of keys and values. Its size does not grow
// with the sequence.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "layers/attention/layer_state.h"

namespace zoo {

/// One or more tensors (B, …). Zeros stand for a row that has read nothing.
class RunningState final : public LayerState {
 public:
  explicit RunningState(std::vector<torch::Tensor> tensors) : tensors_(std::move(tensors)) {}

  const torch::Tensor& tensor(size_t index) const { return tensors_.at(index); }
  /// Replaces tensor `index` by its value after further tokens. Gradients are not kept.
  void set(size_t index, const torch::Tensor& value);

  void reorder(const torch::Tensor& rows) override;
  void join(const LayerState& other) override;
  /// Keeps a row or empties it. Throws c10::Error for 0 < to[b] < from[b], and then changes nothing.
  void truncate(std::span<const int64_t> from, std::span<const int64_t> to) override;
  std::unique_ptr<LayerState> copy() const override;
  int64_t bytes() const override;

 private:
  std::vector<torch::Tensor> tensors_;
};

}  // namespace zoo
