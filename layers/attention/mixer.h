#pragma once
// The sub-layer in which positions exchange information: attention, or a replacement for it.

#include <memory>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/attention/attention_context.h"
#include "layers/attention/layer_state.h"
#include "layers/weights/module.h"

namespace zoo {

/// A module that mixes positions. A new kind is a class that implements this, registered in mixer_types()
/// (models/mixers/mixers.h).
class MixerImpl : public Module {
 public:
  /// x: (B, T, D) → (B, T, D). A mixer may ignore parts of the context that it does not need. If it cannot
  /// support a part, it must refuse when it is constructed.
  virtual torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context) = 0;
  /// An empty state for `n_rows` rows, never null. A mixer that cannot write token by token has none: the
  /// default throws UsageError.
  virtual std::unique_ptr<LayerState> new_state(int64_t n_rows) const;
};

/// The holder of a mixer, as TORCH_MODULE makes one. Its operator() is declared, because a braced context
/// does not fit the template of torch::nn::ModuleHolder: attention(x, {.mask = Mask::causal()}).
template <class Module>
class MixerHolder : public torch::nn::ModuleHolder<Module> {
 public:
  using torch::nn::ModuleHolder<Module>::ModuleHolder;
  using Impl = Module;
  /// As forward().
  torch::Tensor operator()(const torch::Tensor& x, const AttentionContext& context = {}) {
    return this->get()->forward(x, context);
  }
};

}  // namespace zoo
