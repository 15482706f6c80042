#pragma once
// Positions as vectors that are added to those of tokens.

#include <optional>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/attention/positions.h"
#include "layers/weights/weights.h"

namespace zoo {

/// A vector for each position. Programs may add their own kinds to position_types()
/// (models/config/layer_types.h).
class AddedPositionsImpl : public Module {
 public:
  /// (T, D), or (B, T, D) if rows differ.
  virtual torch::Tensor forward(const PositionRange& range, torch::Device device) = 0;
  /// As WeightOwner::visit_weights(), for the embedder that has the positions: initial weights are drawn in
  /// the order of the visits. Default: it has no tables.
  virtual void visit_tables(const WeightVisitor& /*visit*/) const {}
};

struct SinusoidalPositionsOptions {
  explicit SinusoidalPositionsOptions(int64_t d_model) : d_model_(d_model) {}
  TORCH_ARG(int64_t, d_model);
  TORCH_ARG(SinusoidLayout, layout) = SinusoidLayout::interleaved;
  /// Position 0 has the vector of this number.
  TORCH_ARG(int64_t, offset) = 0;
  /// So many positions have their vectors in a buffer, which a checkpoint has and no training changes
  /// (Pegasus); absent: they are computed, for any position.
  TORCH_ARG(std::optional<int64_t>, stored) = std::nullopt;
};

/// sinusoidal_positions() with base 10000; it has no parameters.
class SinusoidalPositionsImpl : public Cloneable<SinusoidalPositionsImpl, AddedPositionsImpl> {
 public:
  explicit SinusoidalPositionsImpl(const SinusoidalPositionsOptions& options);
  /// Throws DataError for positions beyond those that are stored.
  torch::Tensor forward(const PositionRange& range, torch::Device device) override;
  void pretty_print(std::ostream& stream) const override;

  SinusoidalPositionsOptions options;
  torch::Tensor table;  // (stored, D); undefined if they are computed

 private:
  PositionTable sinusoids_;  // (positions so far, D)
};

struct LearnedPositionsOptions {
  LearnedPositionsOptions(int64_t max_positions, int64_t d_model)
      : max_positions_(max_positions), d_model_(d_model) {}
  TORCH_ARG(int64_t, max_positions);
  TORCH_ARG(int64_t, d_model);
  /// Rows of the table before that of position 0, which no position uses.
  TORCH_ARG(int64_t, offset) = 0;
};

/// A row of a table for each position.
class LearnedPositionsImpl : public Cloneable<LearnedPositionsImpl, AddedPositionsImpl> {
 public:
  explicit LearnedPositionsImpl(const LearnedPositionsOptions& options);
  /// Throws DataError for positions beyond the table.
  torch::Tensor forward(const PositionRange& range, torch::Device device) override;
  void visit_tables(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  LearnedPositionsOptions options;
  torch::Tensor weight;  // (offset + max_positions, D)
};

}  // namespace zoo
