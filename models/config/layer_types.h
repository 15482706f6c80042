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
#include "layers/found_positions.h"
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

/// The keys of `position: convolution`, see ConvolutionalPositionsOptions.
struct ConvolutionPositionConfig {
  int64_t kernel_size = 128;
  int64_t groups = 16;
};
void describe(ConfigVisitor& v, ConvolutionPositionConfig& c);

/// Positions, as vectors that are added to those of tokens, or as numbers that are added to scores. Programs
/// add their own with position_types().add(). The library's rotary positions and Shaw's vectors are parts of
/// attention: their types have none of these functions.
struct PositionType : TypeInfo {
  std::function<std::shared_ptr<AddedPositionsImpl>(const ModelConfig& config)> make_added = nullptr;
  std::function<std::shared_ptr<ScoreBiasImpl>(const ModelConfig& config, Direction direction)> make_bias =
      nullptr;
  /// Whether `make_bias` needs ModelConfig::grid.
  bool needs_grid = false;
  /// Vectors that are found in those of an encoder's places.
  std::function<std::shared_ptr<FoundPositionsImpl>(const ModelConfig& config)> make_found = nullptr;
  /// Adds the cost of `make_found`'s module, which reads n_tokens vectors; `name` is its path.
  std::function<void(CostAccount& account, const std::string& name, const ModelConfig& config,
                     double n_tokens)>
      count_found = nullptr;
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

/// Makes the module of PositionType::make_found; null: the type that the configuration selects has none.
using MakeFoundPositions = std::function<std::shared_ptr<FoundPositionsImpl>()>;
MakeFoundPositions found_positions_of(const ModelConfig& config);
/// Adds the cost of that module with path `name`, if there is one.
void count_found_positions(CostAccount& account, const std::string& name, const ModelConfig& config,
                           double n_tokens);

/// The type of the numbers that are added to scores: that of `position` if it has such numbers, otherwise
/// that of `score_position`. It may have none (make_bias).
const PositionType& score_bias_type(const ModelConfig& config);

/// Whether the type of positions that the configuration selects needs the scores of pairs of tokens, which
/// not every mixer has.
bool needs_scores(const ModelConfig& config);

}  // namespace zoo
