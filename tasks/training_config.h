#pragma once
// The `training:` part of a configuration.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"
#include "io/config/config_file.h"
#include "io/config/registry.h"
#include "layers/activation_checkpointing.h"
#include "models/lora.h"
#include "models/precision.h"

namespace zoo {

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
  OptimizerKind type = OptimizerKind::adamw;
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

/// Parameters with a learning rate or a weight decay of their own.
struct ParameterGroupConfig {
  std::string pattern;                 // of their names, see matches_pattern()
  double lr_factor = 1;                // on the scheduled learning rate
  std::optional<double> weight_decay;  // default: optimizer.weight_decay for those in optimizer.decayed
};
void describe(ConfigVisitor& v, ParameterGroupConfig& c);

void describe(ConfigVisitor& v, LoraConfig& c);

/// The learning rate as a function of the step, see training/schedule.h.
enum class ScheduleKind { constant, linear, cosine, warmup_stable_decay, noam, inverse_sqrt };
constexpr auto config_names(ScheduleKind) {
  return std::to_array<std::string_view>(
      {"constant", "linear", "cosine", "warmup_stable_decay", "noam", "inverse_sqrt"});
}

struct ScheduleConfig {
  ScheduleKind type = ScheduleKind::cosine;
  int64_t warmup_steps = 0;
  /// cosine, linear: the step at which the decay ends, default training.steps; warmup_stable_decay: the
  /// length of the decay.
  std::optional<int64_t> decay_steps;
  double min_lr_ratio = 0.0;  // final lr / peak lr
};
void describe(ConfigVisitor& v, ScheduleConfig& c);

/// For several processes that train one model, see parallel/.
struct ParallelConfig {
  bool shard_optimizer = false;  // ZeRO, stage 1
  int64_t bucket_mb = 25;        // size of a gradient bucket in MiB
  int64_t timeout_seconds = 300;
};
void describe(ConfigVisitor& v, ParallelConfig& c);

struct TrainingConfig {
  int64_t seed = 1;
  int64_t steps = 1000;                         // optimiser steps
  std::optional<int64_t> epochs;                // replaces steps: passes through the training data
  AutoOr<int64_t> batch_size = 32;              // auto: as the available memory allows
  std::optional<int64_t> effective_batch_size;  // with batch_size auto: sequences in a step
  std::optional<int64_t> batch_tokens;
  int64_t gradient_accumulation = 1;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  std::vector<std::string> freeze;                     // patterns of names of parameters
  std::vector<ParameterGroupConfig> parameter_groups;  // the first one with a matching pattern counts
  std::optional<LoraConfig> lora;
  Precision precision = Precision::automatic;
  FloatProducts matmul = FloatProducts::fp32;  // on a GPU, where precision leaves products in fp32
  ActivationCheckpointing activation_checkpointing = ActivationCheckpointing::none;
  bool cuda_graphs = false;                 // see training/step_graph.h
  double clip_grad_norm = 1.0;              // 0 = off
  Selection objective = Selection("task");  // one of objective_types()
  double label_smoothing = 0.0;
  std::optional<double> max_seconds;  // limit of the training time, evaluation included
  int64_t log_every = 10;
  int64_t evaluate_every = 250;
  bool evaluate_at_start = false;
  std::optional<int64_t> evaluate_batches;  // at most; default the whole validation split
  /// Training ends after so many evaluations in a row that were not better than the best one.
  std::optional<int64_t> patience;
  /// The metric on the validation data that selects the run's weights. `last` keeps those of the newest
  /// evaluation instead, whatever its metrics are.
  std::string best_by = "loss";
  int64_t checkpoint_every = 500;
  int64_t keep_checkpoints = 2;
  std::optional<double> ema_decay;  // for a moving average of the weights, which is then evaluated and kept
  std::optional<int64_t> average_last;  // number of checkpoints whose mean is evaluated at the end
  int64_t threads = 0;                  // of each process; 0 = all cores, divided among the processes
  ParallelConfig parallel;

  /// Sequences in a batch, which may go through the model in several parts.
  int64_t sequences() const { return batch_size.value.value_or(effective_batch_size.value_or(1)); }
  bool keeps_last() const { return best_by == "last"; }
  /// The metric that is reported for the kept weights. It is best_by, or the loss if best_by is `last`.
  std::string kept_metric() const { return keeps_last() ? "loss" : best_by; }
  /// Whether training ends after step `step`, when it has been evaluated, because step `best_step` was the
  /// best one.
  bool is_out_of_patience(int64_t step, int64_t best_step) const {
    return patience && step / evaluate_every - best_step / evaluate_every >= *patience;
  }
};
void describe(ConfigVisitor& v, TrainingConfig& c);
void validate(const TrainingConfig& c, const Complain& complain);

}  // namespace zoo
