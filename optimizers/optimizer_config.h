#pragma once
// The `training.optimizer` and `training.parameter_groups` parts of a configuration.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"
#include "io/config/registry.h"

namespace zoo {

/// The library's optimisers. Programs add their own to optimizer_types() (optimizers/optimizer_types.h).
enum class OptimizerKind { adamw, adam, sgd, adafactor, lion, muon };
constexpr auto config_names(OptimizerKind) {
  return std::to_array<std::string_view>({"adamw", "adam", "sgd", "adafactor", "lion", "muon"});
}

/// The parameters that weight decay pulls towards zero. Matrices are all tensors with two or more dimensions.
enum class DecayedParameters { matrices, matrices_without_embeddings, all };
constexpr auto config_names(DecayedParameters) {
  return std::to_array<std::string_view>({"matrices", "matrices_without_embeddings", "all"});
}

struct AdafactorConfig {
  double beta2_decay = -0.8;    // β2 = 1 - step^beta2_decay
  double clip_threshold = 1.0;  // largest root mean square of a step, before the learning rate
  double min_rms = 1e-3;        // steps are relative to a parameter's root mean square, but at least to this
  bool operator==(const AdafactorConfig&) const = default;
};
void describe(ConfigVisitor& v, AdafactorConfig& c);

/// Factor on Muon's learning rate for an (A, B) matrix: original is √max(1, A/B) (Jordan 2024);
/// match_rms_adamw is 0.2·√max(A, B), which makes steps as long as AdamW's (Liu et al. 2025).
enum class MuonLrScale { original, match_rms_adamw };
constexpr auto config_names(MuonLrScale) {
  return std::to_array<std::string_view>({"original", "match_rms_adamw"});
}

enum class MuonPrecision { bf16, fp32 };
constexpr auto config_names(MuonPrecision) { return std::to_array<std::string_view>({"bf16", "fp32"}); }

struct MuonConfig {
  double momentum = 0.95;
  bool nesterov = true;
  MuonLrScale lr_scale = MuonLrScale::original;
  int64_t newton_schulz_steps = 5;
  MuonPrecision precision = MuonPrecision::bf16;  // of the Newton–Schulz iterations
  std::optional<double> adamw_lr;                 // for the parameters that AdamW updates; default lr
  bool operator==(const MuonConfig&) const = default;
};
void describe(ConfigVisitor& v, MuonConfig& c);

struct OptimizerConfig {
  KindSelection<OptimizerKind> type = OptimizerKind::adamw;
  double lr = 1e-3;                         // peak learning rate (noam: factor in the formula)
  std::vector<double> betas = {0.9, 0.98};  // adam, adamw, lion; muon: for its AdamW
  double eps = 1e-8;                        // adam, adamw; muon: for its AdamW
  double weight_decay = 0.01;
  DecayedParameters decayed = DecayedParameters::matrices;
  double momentum = 0.0;  // sgd
  AdafactorConfig adafactor = {};
  MuonConfig muon = {};
};
void describe(ConfigVisitor& v, OptimizerConfig& c);
void validate(const OptimizerConfig& c, const Complain& complain);

/// Parameters with a learning rate or a weight decay of their own.
struct ParameterGroupConfig {
  std::string pattern;                 // of their names, see matches_pattern()
  double lr_factor = 1;                // on the scheduled learning rate
  std::optional<double> weight_decay;  // default: optimizer.weight_decay for those in optimizer.decayed
};
void describe(ConfigVisitor& v, ParameterGroupConfig& c);

}  // namespace zoo
