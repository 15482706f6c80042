#pragma once
// What a self-attention remembers if later queries see only a window of keys, and the first ones.

#include <cstdint>
#include <memory>
#include <span>

#include <torch/types.h>

#include "layers/attention/attention_pattern.h"
#include "layers/attention/layer_state.h"

namespace zoo {

/// The keys and values of the first positions and of the most recent ones, as Reach says. Recent ones are in
/// a ring: a new token takes the place of the oldest one. The storage grows with the sequence until it has
/// all places, and then stays as it is.
class WindowState final : public LayerState {
 public:
  WindowState(int64_t n_rows, Reach reach) : n_rows_(n_rows), reach_(reach) {}
  WindowState* window() override { return this; }

  /// Keys (B, K, S, Dh), values (B, K, S, Dv), and the position of each: (B or 1, S) int64, -1 = empty.
  struct Contents {
    torch::Tensor keys, values, positions;
  };
  /// The keys and values of rows that have all read `length` tokens. The state holds nothing else then.
  KeysAndValues of_equal_rows(int64_t length) const;
  /// The contents when each row has read the tokens before `range`.
  Contents before(const PositionRange& range) const;
  /// The contents when each row has read the tokens of `range`, too.
  Contents after(const PositionRange& range) const;
  /// Writes the keys (B, K, T, Dh) and values (B, K, T, Dv) of the tokens at `range`.
  void write(const torch::Tensor& keys, const torch::Tensor& values, const PositionRange& range);

  void reorder(const torch::Tensor& rows) override;
  void join(const LayerState& other) override;
  /// Throws c10::Error if the ring has overwritten a token that a shortened row would need.
  void truncate(std::span<const int64_t> from, std::span<const int64_t> to) override;
  std::unique_ptr<LayerState> copy() const override;
  int64_t bytes() const override;

 private:
  int64_t capacity() const { return keys_.defined() ? keys_.size(2) : 0; }
  void grow(int64_t n_positions, const torch::Tensor& like_keys, const torch::Tensor& like_values);
  torch::Tensor positions(const torch::Tensor& lengths) const;
  Contents contents(const torch::Tensor& lengths, int64_t longest) const;

  int64_t n_rows_;
  Reach reach_;
  torch::Tensor keys_, values_;  // (B, K, capacity, D); undefined before anything is read
};

}  // namespace zoo
