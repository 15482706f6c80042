#pragma once
// Parts of a layer that programs can add to: the types of `model.norm`, `model.activation` and
// `model.position`. A type may have keys of its own:
//     norm: {type: dynamic_tanh, alpha: 0.5}

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/config/registry.h"
#include "layers/attention/added_positions.h"
#include "layers/attention/direction.h"
#include "layers/attention/position_bias.h"
#include "layers/feed_forward.h"
#include "layers/weights/norm.h"
#include "models/config/model_config.h"

namespace zoo {

/// A norm. Programs add their own with norm_types().add().
struct NormType : TypeInfo {
  std::function<std::shared_ptr<const NormFormula>(const Selection& selection)> make;
};

/// An activation of the feed-forward. Programs add their own with activation_types().add().
struct ActivationType : TypeInfo {
  std::function<std::shared_ptr<const ActivationFunction>(const Selection& selection)> make;
};

/// Positions, as vectors that are added to those of tokens, or as numbers that are added to scores. Programs
/// add their own with position_types().add(). The library's rotary positions and Shaw's vectors are parts of
/// attention: their types have neither function.
struct PositionType : TypeInfo {
  std::function<std::shared_ptr<AddedPositionsImpl>(const ModelConfig& config)> make_added = nullptr;
  std::function<std::shared_ptr<ScoreBiasImpl>(const ModelConfig& config, Direction direction)> make_bias =
      nullptr;
  /// Adds the cost of the module's tables; `name` is its path. Default: it has none.
  std::function<void(CostAccount& account, const std::string& name, const ModelConfig& config)> count =
      nullptr;
};

inline std::string_view what_lacks(const NormType& type) {
  return type.make ? std::string_view() : "make, which gives its formula";
}
inline std::string_view what_lacks(const ActivationType& type) {
  return type.make ? std::string_view() : "make, which gives its function";
}

/// Hold those of NormKind, Activation and Position, and added ones.
Registry<NormType>& norm_types();
Registry<ActivationType>& activation_types();
Registry<PositionType>& position_types();

/// The activation that the configuration selects.
std::shared_ptr<const ActivationFunction> activation_of(const ModelConfig& config);

/// The type of the numbers that are added to scores: that of `position` if it has such numbers, otherwise
/// that of `score_position`. It may have none (make_bias).
const PositionType& score_bias_type(const ModelConfig& config);

/// Whether the type of positions that the configuration selects needs the scores of pairs of tokens, which
/// not every mixer has.
bool needs_scores(const ModelConfig& config);

}  // namespace zoo
