#pragma once
// The factorised patterns of the Sparse Transformer (Child et al. 2019), and the blocks of BigBird (Zaheer et
// al. 2020).

#include <torch/arg.h>
#include <torch/types.h>

#include "layers/attention/attention_pattern.h"

namespace zoo {

/// A query sees the keys at distances below `stride`, and those at distances that are multiples of it. This
/// is the union of both factors of the strided pattern, the paper's "merged head". With a stride near √n,
/// each query sees about 2√n keys.
class StridedPattern final : public AttentionPattern {
 public:
  /// Throws c10::Error if the stride is below 2.
  StridedPattern(Direction direction, int64_t stride);

  Bands bands(int64_t n) const override;
  torch::Tensor sees(const torch::Tensor& queries, const torch::Tensor& keys) const override;
  std::string description() const override;

 private:
  int64_t stride_;
};

/// Positions are in blocks of `stride`. A query sees its own block, and the last `n_summary` positions of
/// every block. This is the union of both factors of the fixed pattern.
class FixedPattern final : public AttentionPattern {
 public:
  /// Throws c10::Error unless 1 ≤ n_summary < stride.
  FixedPattern(Direction direction, int64_t stride, int64_t n_summary);

  Bands bands(int64_t n) const override;
  torch::Tensor sees(const torch::Tensor& queries, const torch::Tensor& keys) const override;
  std::string description() const override;

 private:
  int64_t stride_, n_summary_;
};

struct BlockOptions {
  /// Positions of a block.
  TORCH_ARG(int64_t, size) = 64;
  /// Neighbouring blocks that a block sees on each side.
  TORCH_ARG(int64_t, n_window) = 1;
  /// The first blocks that see and are seen everywhere. In a bidirectional pattern also as many last blocks,
  /// as in BigBird-ITC.
  TORCH_ARG(int64_t, n_global) = 1;
  /// Bidirectional: sequences of at most so many positions see everything.
  TORCH_ARG(int64_t, full_up_to) = 0;
  /// Other blocks that a block sees, drawn at random.
  TORCH_ARG(int64_t, n_random) = 3;
  TORCH_ARG(int64_t, seed) = 0;
};

/// BigBird: each block of queries sees neighbouring, global and random blocks of keys. The random blocks of a
/// block depend on the seed alone in a causal pattern, and also on the number of blocks of the sequence in a
/// bidirectional one. All heads see the same blocks.
class BlocksPattern final : public AttentionPattern {
 public:
  /// Throws c10::Error if an option is negative or the size is not positive, or full_up_to is set for a
  /// causal pattern.
  BlocksPattern(Direction direction, const BlockOptions& options);

  Bands bands(int64_t n) const override;
  /// Each row as if it were alone: padding does not change its blocks.
  VisiblePairs visible(const PatternInput& input) const override;
  torch::Tensor sees(const torch::Tensor& queries, const torch::Tensor& keys) const override;
  std::string description() const override;

  /// The blocks of keys that a block of queries sees, in order, in a sequence of n_blocks.
  std::vector<int64_t> blocks_of(int64_t block, int64_t n_blocks) const;

 private:
  bool is_global(int64_t block, int64_t n_blocks) const;

  BlockOptions options_;
};

}  // namespace zoo
