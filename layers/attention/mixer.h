#pragma once
// The sub-layer in which positions exchange information: attention, or a replacement for it.

#include <memory>

#include <torch/types.h>

#include "layers/attention/attention_context.h"
#include "layers/attention/layer_state.h"
#include "layers/modules/module.h"

namespace zoo {

/// A module that mixes positions. A new kind is a class that implements this, registered in mixer_types()
/// (models/mixers/mixers.h).
class MixerImpl : public Module {
 public:
  /// x: (B, T, D) → (B, T, D). A mixer may ignore parts of the context that it does not need. If it cannot
  /// support a part, it must refuse when it is constructed.
  virtual torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context) = 0;
  /// An empty state for `n_rows` rows.
  virtual std::unique_ptr<LayerState> new_state(int64_t n_rows) const = 0;
};

}  // namespace zoo
