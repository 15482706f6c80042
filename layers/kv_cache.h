#pragma once
// Keys and values kept between decoding steps, so that each step computes only those of the newest token.

#include <vector>

#include <torch/types.h>

namespace zoo {

/// The keys and values of one attention module. Storage grows by doubling: a step copies only what is new.
class KeyValues {
 public:
  /// Appends keys (B, K, T, Dh) and values (B, K, T, Dv).
  void append(const torch::Tensor& keys, const torch::Tensor& values);
  /// (B, K, length, Dh) and (B, K, length, Dv), views of the storage.
  torch::Tensor keys() const { return keys_.narrow(2, 0, length_); }
  torch::Tensor values() const { return values_.narrow(2, 0, length_); }
  int64_t length() const { return length_; }
  bool empty() const { return length_ == 0; }
  /// Row i becomes what row rows[i] was; rows: (B') int64. Beams are reordered, copied and dropped by this.
  void reorder(const torch::Tensor& rows);
  size_t bytes() const;

 private:
  torch::Tensor keys_, values_;  // (B, K, capacity, Dh)
  int64_t length_ = 0;
};

/// The caches of a whole stack of layers.
struct KvCache {
  std::vector<KeyValues> self;   // one a layer
  std::vector<KeyValues> cross;  // one a layer with cross-attention; computed once from the encoder's memory

  /// Tokens that the self-attention caches hold.
  int64_t length() const { return self.empty() ? 0 : self.front().length(); }
  void reorder(const torch::Tensor& rows);
  size_t bytes() const;
};

}  // namespace zoo
