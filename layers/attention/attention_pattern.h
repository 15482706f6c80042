#pragma once
// Which keys the queries of a self-attention see, as a value that kernels understand without a tensor of
// (query, key) pairs. Each pattern is defined twice: as bands, for kernels, and as a condition on positions,
// for decoding. Tests compare both.

#include <cstdint>
#include <optional>
#include <string>

#include <torch/types.h>

#include "kernels/bands.h"
#include "layers/attention/direction.h"

namespace zoo {

/// The sequences of a call.
struct PatternInput {
  int64_t length = 0;          // n: every row has the positions 0 … n-1
  torch::Tensor lengths = {};  // (B) int64: positions of each row without padding; undefined = n
  torch::Tensor ids = {};      // (B, n) int64: token ids; undefined if the positions are not tokens
};

/// The positions that later queries of a sequence can still see: its first ones, and the most recent ones.
struct Reach {
  int64_t first = 0, recent = 0;
};

class AttentionPattern {
 public:
  explicit AttentionPattern(Direction direction) : direction_(direction) {}
  virtual ~AttentionPattern() = default;

  /// The visible pairs of a sequence of n positions; causal, if the pattern is.
  virtual Bands bands(int64_t n) const = 0;
  /// The visible pairs of each row. Default: bands(length) in every row.
  virtual VisiblePairs visible(const PatternInput& input) const;
  /// Whether queries see keys, for causal patterns: positions (…) int64 that broadcast with each other →
  /// bool.
  virtual torch::Tensor sees(const torch::Tensor& queries, const torch::Tensor& keys) const = 0;
  /// What a causal sequence must remember; absent = everything.
  virtual std::optional<Reach> reach() const { return std::nullopt; }
  /// Whether a query sees every earlier position that is in reach, so that decoding needs no mask.
  virtual bool sees_all_in_reach() const { return false; }
  /// The number of keys that a query sees on each side besides its own (in a causal pattern, before it), if
  /// this is all there is to the pattern.
  virtual std::optional<int64_t> plain_window() const { return std::nullopt; }
  /// For module listings: "window(size=256)".
  virtual std::string description() const = 0;

  Direction direction() const { return direction_; }

 protected:
  /// `bands`, without later keys if the pattern is causal.
  Bands directed(Bands bands) const;

 private:
  Direction direction_;
};

}  // namespace zoo
