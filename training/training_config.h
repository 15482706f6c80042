#pragma once
// The `training:` part of a configuration.

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "io/config_file.h"

namespace zoo {

enum class OptimizerKind { adamw, adam, sgd };
constexpr auto config_names(OptimizerKind) {
  return std::to_array<std::string_view>({"adamw", "adam", "sgd"});
}

struct OptimizerConfig {
  OptimizerKind type = OptimizerKind::adamw;
  double lr = 1e-3;                         // peak learning rate (noam: factor on the formula)
  std::vector<double> betas = {0.9, 0.98};  // adam, adamw
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool decay_all =
      false;  // also norms, biases and embeddings of positions (tensors of one dimension are spared else)
  double momentum = 0.0;  // sgd
};
void describe(ConfigVisitor& v, OptimizerConfig& c);

/// lr as a function of the step (SPEC: constant, linear, cosine, warm-up-stable-decay, Noam, inverse square
/// root).
enum class ScheduleKind { constant, linear, cosine, warmup_stable_decay, noam, inverse_sqrt };
constexpr auto config_names(ScheduleKind) {
  return std::to_array<std::string_view>(
      {"constant", "linear", "cosine", "warmup_stable_decay", "noam", "inverse_sqrt"});
}

struct ScheduleConfig {
  ScheduleKind type = ScheduleKind::cosine;
  int64_t warmup_steps = 0;
  std::optional<int64_t>
      decay_steps;            // cosine, linear: default all steps; warmup_stable_decay: length of the decay
  double min_lr_ratio = 0.0;  // final lr / peak lr
};
void describe(ConfigVisitor& v, ScheduleConfig& c);

/// What number format the matrix products of training run in. (bf16 and fp16 join here.)
enum class Precision { automatic, fp32 };
constexpr auto config_names(Precision) { return std::to_array<std::string_view>({"auto", "fp32"}); }

struct TrainingConfig {
  int64_t seed = 1;
  int64_t steps = 1000;  // optimiser steps
  int64_t batch_size = 32;
  std::optional<int64_t> batch_tokens;
  int64_t gradient_accumulation = 1;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  Precision precision = Precision::automatic;
  double clip_grad_norm = 1.0;  // 0 = off
  double label_smoothing = 0.0;
  std::optional<double> max_seconds;  // of training time, evaluation included; then stop as if done
  int64_t log_every = 10;
  int64_t evaluate_every = 250;
  std::optional<int64_t> evaluate_batches;  // at most; default the whole validation split
  int64_t checkpoint_every = 500;
  int64_t keep_checkpoints = 2;
  int64_t threads = 0;  // 0 = all cores
};
void describe(ConfigVisitor& v, TrainingConfig& c);
void validate(const TrainingConfig& c, const Complain& complain);

}  // namespace zoo
