#pragma once
// The mixers of a layer: the types of `model.attention`.

#include <functional>
#include <memory>
#include <string_view>

#include "io/config/registry.h"
#include "layers/mixer.h"
#include "models/cost.h"
#include "models/model_config.h"

namespace zoo {

/// The place of a mixer in a model.
struct MixerPlace {
  const ModelConfig& model;
  StackRole role;
  int64_t layer;  // from 0, within its stack

  /// The type that the configuration selects for this layer, with the values of its keys.
  const Selection& selection() const { return model.attention_of(layer); }
};

/// A type of `model.attention`. Programs add their own with mixer_types().add().
struct MixerType : TypeInfo {
  std::function<std::shared_ptr<MixerImpl>(const MixerPlace& place)> make;
  /// Adds the cost of the mixer; `name` is its path.
  std::function<void(CostAccount& account, std::string name, const MixerPlace& place,
                     const AttentionShape& shape)>
      count;
  /// Reports why the mixer does not fit at this place, for example a mixer that cannot be causal in a
  /// decoder. Default: it fits everywhere.
  std::function<void(const MixerPlace& place, const std::function<void(std::string_view problem)>& complain)>
      validate = nullptr;
};

/// Holds "full", multi-head attention over all visible keys, and added types.
Registry<MixerType>& mixer_types();

/// The configuration's options of an attention. Only self-attention has Shaw's vectors.
AttentionOptions self_attention_options(const ModelConfig& config);
AttentionOptions cross_attention_options(const ModelConfig& config);

}  // namespace zoo
