#pragma once
// Which keys each query sees. Inside the library true always means visible ("keep"). Masks stay symbolic (a
// causal flag, key ranges) as long as possible, because fused kernels do not need a materialised mask.

#include <memory>

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
  /// Query t of row b has position offsets[b] + t, and sees keys up to its own position. offsets: (B) int64.
  static Mask causal(const torch::Tensor& offsets);
  /// An explicit mask in the "keep" convention: non-zero = visible. Shapes (T, S), (B, T, S), (B, 1, 1, S)
  /// and anything else that broadcasts to (B, H, T, S).
  static Mask keep(const torch::Tensor& mask);
  /// An explicit mask in the "block" convention: non-zero = hidden. Shapes as for keep().
  static Mask block(const torch::Tensor& mask);

  /// The same mask for rows that begin at different positions: if it is causal, it is so from `offsets` on.
  Mask from(const torch::Tensor& offsets) const;

  Mask operator&(const Mask& other) const;

  /// Whether everything is visible.
  bool is_trivial() const { return !causal_ && !has_tensors(); }
  /// Whether only causality hides anything.
  bool is_only_causal() const { return causal_ && !has_tensors(); }

  /// Whether queries see no keys after their own position.
  bool is_causal() const { return causal_ || offsets_.defined(); }
  /// (B) int64: row b sees no keys from ends()[b] on; undefined = all.
  const torch::Tensor& ends() const { return ends_; }
  /// Whether nothing hides keys but causality from position 0 on, and lengths. Such a mask needs no tensor of
  /// (query, key) pairs.
  bool is_causal_or_lengths() const { return !offsets_.defined() && !keep_.defined(); }

  /// Whether a query may see nothing at all. One that sees its own position sees something.
  bool may_hide_all() const { return ends_.defined() || keep_.defined(); }

  /// (B|1, H|1, T, S) bool, true = visible; undefined if everything is visible.
  torch::Tensor materialize(int64_t n_queries, int64_t n_keys, torch::Device device) const;
  /// The same as numbers of this type, which are added to scores: 0 or -inf.
  torch::Tensor additive(int64_t n_queries, int64_t n_keys, torch::Device device,
                         torch::ScalarType type) const;
  /// The same mask for the layers of one call: they share the tensors of the first materialize() and of the
  /// first additive(), as long as the numbers of queries and keys, the device and the type stay the same.
  Mask shared() const;

 private:
  bool has_tensors() const { return offsets_.defined() || ends_.defined() || keep_.defined(); }

  bool causal_ = false;
  torch::Tensor offsets_;  // (B): the last key that query 0 sees
  torch::Tensor ends_;     // (B): one past the last visible key
  torch::Tensor keep_;     // explicit, 4-D bool
  /// The result of a materialize(): undefined before the first one.
  struct Materialized {
    int64_t n_queries = -1, n_keys = -1;
    torch::Device device = torch::kCPU;
    torch::Tensor pairs, numbers;
  };
  std::shared_ptr<Materialized> materialized_;  // of shared()

  torch::Tensor visible_pairs(int64_t n_queries, int64_t n_keys, torch::Device device) const;
};

}  // namespace zoo
