#pragma once
// What the mixers with heads share: attention's projections, the precision of sums, and which tokens they
// see.

#include <torch/types.h>

#include "layers/attention/head_projections.h"

namespace zoo {

/// A mixer with the projections of attention and without its scores.
class ProjectedMixerImpl : public HeadProjectionsImpl {
 protected:
  /// Throws c10::Error for Shaw's vectors, and as HeadProjectionsImpl.
  explicit ProjectedMixerImpl(const AttentionOptions& options);
  /// project_heads(), after require_no_scores().
  Heads heads_of(const torch::Tensor& x, const AttentionContext& context);
};

/// Throws c10::Error for a context with a bias of the scores or with a memory.
void require_no_scores(const AttentionContext& context);

/// Zeros for the state of a mixer with this map: on its device, float32, or float64 if the map is.
torch::Tensor empty_state(const Linear& map, torch::IntArrayRef sizes);

/// Sums over many tokens are computed in float32 at least, also under autocast, which the lifetime of this
/// object switches off for this thread.
class FullPrecision {
 public:
  explicit FullPrecision(torch::Device device);
  ~FullPrecision();
  FullPrecision(const FullPrecision&) = delete;
  FullPrecision& operator=(const FullPrecision&) = delete;

  /// x in float32, or in float64 if it is.
  torch::Tensor operator()(const torch::Tensor& x) const;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
};

/// (B, T) bool, true = a token of its row: false for padding, which must not change what a mixer remembers.
/// Undefined: there is no padding. Throws c10::Error for a mask that hides anything besides later tokens and
/// padding.
torch::Tensor real_tokens(const AttentionContext& context, int64_t n_tokens, torch::Device device);

}  // namespace zoo
