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

/// The places of a picture, row by row, and the vectors that stand before them, such as a class token.
struct GridShape {
  int64_t rows = 0, columns = 0;
  int64_t n_before = 0;

  int64_t length() const { return rows * columns + n_before; }
  /// The numbers of each head: one for each distance on the grid, and three for pairs with a vector before
  /// it.
  int64_t n_distances() const { return (2 * rows - 1) * (2 * columns - 1) + (n_before > 0 ? 3 : 0); }
};

/// (T, T) int64: the row of a table of grid.n_distances() numbers for query i and key j, as in BEiT (Bao et
/// al. 2022) and timm: by the distance in rows and in columns, and behind these the rows for queries before
/// the grid, for keys before the grid, and for both.
torch::Tensor grid_distances(const GridShape& grid);

struct GridBiasOptions {
  GridBiasOptions(int64_t n_heads, GridShape grid) : n_heads_(n_heads), grid_(grid) {}
  TORCH_ARG(int64_t, n_heads);
  TORCH_ARG(GridShape, grid);
};

/// A learned number for each distance of two places on a grid and each head.
class GridBiasImpl : public Cloneable<GridBiasImpl, ScoreBiasImpl>, public WeightOwner {
 public:
  explicit GridBiasImpl(const GridBiasOptions& options);
  /// Throws DataError for another number of places than those of the grid.
  torch::Tensor at(const PositionRange& range, torch::Device device) override;
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  GridBiasOptions options;
  torch::nn::Embedding numbers{nullptr};  // (n_distances, H)

 private:
  torch::Tensor distances_;  // (T, T)
};

/// (T, S) int64, or (B, T, S) if rows differ: j - i for queries i in `range` and keys j = 0 … S-1.
torch::Tensor relative_positions(const PositionRange& range, torch::Device device);

}  // namespace zoo
