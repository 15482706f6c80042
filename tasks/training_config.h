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
#include "optimizers/optimizer_config.h"
#include "optimizers/schedules.h"

namespace zoo {

void describe(ConfigVisitor& v, LoraConfig& c);

/// Which process has which experts of model.experts.
///   everywhere  every process has all of them
///   divided     each of n processes has an n-th of them, and their gradients and optimiser's state
enum class ExpertPlacement { everywhere, divided };
constexpr auto config_names(ExpertPlacement) {
  return std::to_array<std::string_view>({"everywhere", "divided"});
}

/// For several processes that train one model, see parallel/.
struct ParallelConfig {
  ExpertPlacement experts = ExpertPlacement::everywhere;
  bool shard_optimizer = false;  // ZeRO, stage 1
  int64_t bucket_mb = 25;        // size of a gradient bucket in MiB
  int64_t timeout_seconds = 300;
};
void describe(ConfigVisitor& v, ParallelConfig& c);

/// Whether a GPU records steps, and replays those of the same shapes (training/step_graph.h).
///   auto   where it is known that a step does the same for the same shapes, and nothing waits for the device
///   true   and an error if a step cannot be recorded
enum class CudaGraphs { automatic, on, off };
constexpr auto config_names(CudaGraphs) { return std::to_array<std::string_view>({"auto", "true", "false"}); }

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
  ResidualStream residual = ResidualStream::fp32;  // with bf16 only
  FloatProducts matmul = FloatProducts::fp32;      // on a GPU, where precision leaves products in fp32
  ActivationCheckpointing activation_checkpointing = ActivationCheckpointing::none;
  CudaGraphs cuda_graphs = CudaGraphs::automatic;
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
  std::vector<Selection> metrics = {};    // of metric_types(), besides those of the task
  std::vector<Selection> observers = {};  // of training_observer_types()
  int64_t checkpoint_every = 500;
  int64_t keep_checkpoints = 2;
  std::optional<double> ema_decay;  // for a moving average of the weights, which is then evaluated and kept
  std::optional<int64_t> average_last;  // number of checkpoints whose mean is evaluated at the end
  int64_t threads = 0;                  // of each process; 0 = all cores, divided among the processes
  ParallelConfig parallel;

  /// Sequences in a batch, which may go through the model in several parts.
  int64_t sequences() const { return batch_size.value.value_or(effective_batch_size.value_or(1)); }
  /// The learning rate of step `step` from 0. `time_used`: the used fraction of max_seconds.
  double learning_rate(int64_t d_model, int64_t step, double time_used = 0) const {
    return zoo::learning_rate({.config = schedule,
                               .peak = optimizer.lr,
                               .step = step,
                               .steps = steps,
                               .d_model = d_model,
                               .time_used = time_used});
  }
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
