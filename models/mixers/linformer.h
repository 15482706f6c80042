#pragma once
// Linformer (Wang et al. 2020): attention over a fixed number k of slots. Keys and values are projected over
// positions by E and F, (k, n): softmax(Q (EK)ᵀ·scale) F V.

#include <array>
#include <memory>
#include <string_view>

#include "layers/projected_mixer.h"
#include "layers/weights/module.h"
#include "models/mixers/mixers.h"

namespace zoo {

/// Which projections are the same (section 4 of the paper, "parameter sharing").
///   heads      one E and one F in each layer, for all heads
///   key_value  E = F in each layer
///   layer      E = F, one for all layers of a stack
enum class LinformerSharing { heads, key_value, layer };
constexpr auto config_names(LinformerSharing) {
  return std::to_array<std::string_view>({"heads", "key_value", "layer"});
}

struct PositionProjectionOptions {
  PositionProjectionOptions(int64_t n_slots, int64_t n_positions)
      : n_slots_(n_slots), n_positions_(n_positions) {}
  /// k
  TORCH_ARG(int64_t, n_slots);
  /// n, the most positions of a sequence; at least k.
  TORCH_ARG(int64_t, n_positions);
  /// Whether values have a projection of their own.
  TORCH_ARG(bool, separate_values) = true;
};

/// E and F. Their entries begin as N(0, 1/k), as in the paper's theorem 1. A sequence of T positions uses the
/// first T columns.
class PositionProjectionImpl : public Cloneable<PositionProjectionImpl> {
 public:
  explicit PositionProjectionImpl(const PositionProjectionOptions& options);
  /// (B, K, T, Dh) → (B, K, k, Dh). Throws DataError if T > n.
  torch::Tensor project_keys(const torch::Tensor& x) const;
  torch::Tensor project_values(const torch::Tensor& x) const;
  void pretty_print(std::ostream& stream) const override;

  PositionProjectionOptions options;
  torch::Tensor keys;    // E: (k, n)
  torch::Tensor values;  // F: (k, n), or undefined: E
};
TORCH_MODULE(PositionProjection);

/// Not causal: each slot sees every position. Keys and values of padding are 0 before the projection.
class LinformerImpl : public Cloneable<LinformerImpl, ProjectedMixerImpl> {
 public:
  /// With a projection of its own, the submodule "projection"; or with a `shared` one, which another module
  /// owns, for several layers.
  LinformerImpl(const AttentionOptions& options, const PositionProjectionOptions& projection,
                std::shared_ptr<PositionProjectionImpl> shared = nullptr);
  /// x: (B, T, D) → (B, T, D). Throws DataError if T is greater than the projection's n, c10::Error for a
  /// causal mask, a state, or if weights are wanted.
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  auto arguments() const { return std::tie(options, projection_->options, shared_); }
  void pretty_print(std::ostream& stream) const override;

  const PositionProjectionImpl& projection() const { return *projection_; }

 protected:
  /// A layer that is cloned by itself makes its mixer with the stack's projection. The mixer of its clone
  /// gets a copy of the projection, on the same device.
  void take_settings(const torch::nn::Module& from) override;

 private:
  std::shared_ptr<PositionProjectionImpl> shared_;      // not registered here; null: there is an own one
  std::shared_ptr<PositionProjectionImpl> projection_;  // one or the other
  bool is_private_ = false;                             // no other module has shared_
};

using Linformer = MixerHolder<LinformerImpl>;

}  // namespace zoo
