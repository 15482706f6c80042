#pragma once
// Positions as a bias on the attention scores. The bias depends on the distance between query and key.

#include <memory>

#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include "layers/attention/direction.h"
#include "layers/attention/positions.h"
#include "layers/weights/weights.h"

namespace zoo {

/// Adds a number to the score of each query and key. Programs may add their own kinds to position_types()
/// (models/config/layer_types.h).
class ScoreBiasImpl : public Module {
 public:
  /// (1, H, T, S), or (B, H, T, S) if rows differ, for queries in `range` and keys 0 … S-1.
  virtual torch::Tensor at(const PositionRange& range, torch::Device device) = 0;
};

/// (H) float32: the slope m_h of head h, the geometric sequence of ALiBi (Press et al. 2022). If H is not a
/// power of two, it is the sequence for the next lower power, then every second slope for the next higher
/// power, as in the authors' code.
torch::Tensor alibi_slopes(int64_t n_heads);

/// (1, H, T, S), or (B, H, T, S) if rows differ: -m_h·|i - j| for queries i in `range` and keys j = 0 … S-1.
torch::Tensor alibi_bias(const torch::Tensor& slopes, const PositionRange& range);

/// T5's bucket of each relative position j - i (Raffel et al. 2020; T5Attention._relative_position_bucket in
/// transformers): exact for small distances, then logarithmic up to max_distance, one bucket beyond.
torch::Tensor t5_buckets(const torch::Tensor& relative_positions, Direction direction, int64_t n_buckets,
                         int64_t max_distance);

struct AlibiBiasOptions {
  explicit AlibiBiasOptions(int64_t n_heads) : n_heads_(n_heads) {}
  TORCH_ARG(int64_t, n_heads);
};

/// ALiBi's bias, which has no parameters.
class AlibiBiasImpl : public Cloneable<AlibiBiasImpl, ScoreBiasImpl> {
 public:
  explicit AlibiBiasImpl(const AlibiBiasOptions& options_)
      : options(options_), slopes_(alibi_slopes(options.n_heads())) {}
  torch::Tensor at(const PositionRange& range, torch::Device device) override;
  void pretty_print(std::ostream& stream) const override;

  AlibiBiasOptions options;

 private:
  torch::Tensor slopes_;  // (H)
};

struct T5BiasOptions {
  explicit T5BiasOptions(int64_t n_heads) : n_heads_(n_heads) {}
  TORCH_ARG(int64_t, n_heads);
  TORCH_ARG(Direction, direction) = Direction::bidirectional;
  TORCH_ARG(int64_t, n_buckets) = 32;
  TORCH_ARG(int64_t, max_distance) = 128;
};

/// A learned bias per bucket and head, shared by the layers of a stack.
class T5BiasImpl : public Cloneable<T5BiasImpl, ScoreBiasImpl>, public WeightOwner {
 public:
  explicit T5BiasImpl(const T5BiasOptions& options);
  torch::Tensor forward(const PositionRange& range);
  torch::Tensor at(const PositionRange& range, torch::Device /*device*/) override { return forward(range); }
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  T5BiasOptions options;
  torch::nn::Embedding buckets{nullptr};  // (n_buckets, H)

 private:
  std::unique_ptr<PositionTable> bucket_of_;
};
TORCH_MODULE(T5Bias);

/// (T, S) int64, or (B, T, S) if rows differ: j - i for queries i in `range` and keys j = 0 … S-1.
torch::Tensor relative_positions(const PositionRange& range, torch::Device device);

}  // namespace zoo
