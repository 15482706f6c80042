#pragma once
// The mixers of a layer: the types of `model.attention`.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/config/registry.h"
#include "layers/attention/attention.h"
#include "layers/attention/direction.h"
#include "layers/attention/mixer.h"
#include "models/config/model_config.h"

namespace zoo {

/// Modules that several mixers of a stack use. The stack owns them and registers them under their names.
class SharedModules {
 public:
  /// The module of this name. The first call makes it.
  template <class Impl>
  std::shared_ptr<Impl> get(const std::string& name, const std::function<std::shared_ptr<Impl>()>& make) {
    for (const auto& [known, module] : modules_)
      if (known == name) return std::dynamic_pointer_cast<Impl>(module);
    auto module = make();
    modules_.emplace_back(name, module);
    return module;
  }
  const std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>& all() const {
    return modules_;
  }

 private:
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> modules_;
};

/// The place of a mixer in a model.
struct MixerPlace {
  const ModelConfig& model;
  StackRole role;
  int64_t layer;                    // from 0, within its stack
  SharedModules* shared = nullptr;  // of the stack; null: outside a stack, or where nothing is built

  /// Whether positions see the past only.
  bool is_causal() const { return role != StackRole::encoder; }
  Direction direction() const { return is_causal() ? Direction::causal : Direction::bidirectional; }
  /// The type that the configuration selects for this layer, with the values of its keys.
  const Selection& selection() const { return model.attention_of(layer); }
};

/// Receives one line about a mixer that does not fit at its place.
using ComplainAboutMixer = std::function<void(std::string_view problem)>;

/// A type of `model.attention`. Programs add their own with mixer_types().add().
struct MixerType : TypeInfo {
  std::function<std::shared_ptr<MixerImpl>(const MixerPlace& place)> make;
  /// Adds the cost of the mixer; `name` is its path.
  std::function<void(CostAccount& account, std::string name, const MixerPlace& place,
                     const AttentionShape& shape)>
      count;
  /// Reports why the mixer does not fit at this place, for example a mixer that cannot be causal in a
  /// decoder. Default: it fits everywhere.
  std::function<void(const MixerPlace& place, const ComplainAboutMixer& complain)> validate = nullptr;
  /// The number of tokens that the selected mixer is made for. Models whose inputs all have one length check
  /// it. Default: any number.
  std::function<int64_t(const MixerPlace& place)> n_tokens = nullptr;
  /// Whether it is softmax attention with the options of AttentionOptions: sinks, a gate, clipped queries.
  bool is_attention = false;
  /// Whether it sees a window, so that rotary positions of its layer have the base rotary.local_theta.
  bool is_local = false;
  /// Why this mixer has no weights of tokens to show: "has no softmax". Empty: it appends its weights to
  /// AttentionContext::maps.
  std::string no_maps = {};
  /// How the time for a sequence of n tokens grows; d is d_model.
  std::string complexity = "n²d";
};

/// A MixerType::make that constructs an Impl with the options for its place.
template <class Impl, class Options>
auto makes(Options options_at) {
  return [options_at](const MixerPlace& place) -> std::shared_ptr<MixerImpl> {
    return std::make_shared<Impl>(options_at(place));
  };
}

inline std::string_view what_lacks(const MixerType& type) {
  return !type.make    ? "make, which builds it"
         : !type.count ? "count, which adds its cost"
                       : std::string_view();
}

/// Holds "full", multi-head attention over all visible keys, and added types.
Registry<MixerType>& mixer_types();

/// Builds the mixer of a place. Throws UsageError if an added type makes none, or, for a decoder, one without
/// a state.
std::shared_ptr<MixerImpl> make_mixer(const MixerType& type, const MixerPlace& place);

/// The configuration's options of an attention. Only self-attention has Shaw's vectors, and scores that
/// depend on the layer.
AttentionOptions self_attention_options(const MixerPlace& place);
AttentionOptions cross_attention_options(const ModelConfig& config);

}  // namespace zoo
