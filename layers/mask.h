#pragma once
// Who may see whom. One polarity inside the library: keep (true = visible). Masks stay symbolic (a causal
// flag, key ranges) as long as possible, because fused kernels want no materialised mask.

#include <torch/types.h>

namespace zoo {

/// A set of visible (query, key) pairs; the default shows everything. Combine with `&`.
class Mask {
 public:
  Mask() = default;

  /// Query i sees keys up to its own position. The last query is aligned with the last key, so that one new
  /// query over a cache of S keys sees all of them: query t of T sees key s where s <= t + (S - T).
  static Mask causal();
  /// Right padding: row b sees keys 0 … lengths[b]-1. lengths: (B) int64; undefined = no padding.
  static Mask lengths(const torch::Tensor& lengths);
  /// Left padding: row b sees keys starts[b] …. starts: (B) int64; undefined = no padding.
  static Mask starts(const torch::Tensor& starts);
  /// An explicit mask in the "keep" convention: non-zero = visible. Shapes (T, S), (B, T, S), (B, 1, 1, S)
  /// and anything else that broadcasts to (B, H, T, S).
  static Mask keep(const torch::Tensor& mask);
  /// An explicit mask in the "block" convention: non-zero = hidden. Shapes as for keep().
  static Mask block(const torch::Tensor& mask);

  Mask operator&(const Mask& other) const;

  bool is_causal() const { return causal_; }
  /// Whether everything is visible.
  bool is_trivial() const { return !causal_ && !has_tensors(); }
  /// Whether only causality hides anything.
  bool is_only_causal() const { return causal_ && !has_tensors(); }

  /// (B|1, H|1, T, S) bool, true = visible; undefined if everything is visible.
  torch::Tensor materialize(int64_t n_queries, int64_t n_keys, torch::Device device) const;
  /// The same mask, materialised once for the use of many layers, unless fused kernels can do without.
  Mask prepared(int64_t n_queries, int64_t n_keys, torch::Device device) const;

 private:
  bool has_tensors() const { return starts_.defined() || ends_.defined() || keep_.defined(); }

  bool causal_ = false;
  torch::Tensor starts_;  // (B): first visible key
  torch::Tensor ends_;    // (B): one past the last visible key
  torch::Tensor keep_;    // explicit, 4-D bool
};

}  // namespace zoo
