#pragma once
// Schedules: the learning rate as a pure function of the step and, if the time is limited, of the time.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "io/config/config_file.h"
#include "io/config/registry.h"

namespace zoo {

/// The library's schedules. Programs add their own to schedule_types(). With the peak lr, W = warmup_steps
/// and s = step + 1:
///   constant             lr, after the warm-up
///   linear               from lr to min_lr_ratio·lr at decay_steps
///   cosine               half a cosine from lr to min_lr_ratio·lr at decay_steps, as in nanoGPT
///   warmup_stable_decay  lr, then in the last decay_steps linearly to min_lr_ratio·lr (Hu et al. 2024)
///   noam                 lr·D^-0.5·min(s^-0.5, s·W^-1.5) (Vaswani et al. 2017, section 5.3)
///   inverse_sqrt         lr·min(s/W, √(W/s)) (fairseq, T5)
/// The first four begin with nanoGPT's warm-up lr·s/(W + 1), which does not waste the first step on a rate of
/// 0. linear, cosine and warmup_stable_decay reach their end when either the steps or the time end.
enum class ScheduleKind { constant, linear, cosine, warmup_stable_decay, noam, inverse_sqrt };
constexpr auto config_names(ScheduleKind) {
  return std::to_array<std::string_view>(
      {"constant", "linear", "cosine", "warmup_stable_decay", "noam", "inverse_sqrt"});
}

struct ScheduleConfig {
  KindSelection<ScheduleKind> type = ScheduleKind::cosine;
  int64_t warmup_steps = 0;
  /// cosine, linear: the step at which the decay ends, default training.steps; warmup_stable_decay: the
  /// length of the decay.
  std::optional<int64_t> decay_steps;
  double min_lr_ratio = 0.0;  // final lr / peak lr
};
void describe(ConfigVisitor& v, ScheduleConfig& c);
/// `steps`: of the training; nothing if they follow from its epochs.
void validate(const ScheduleConfig& c, std::optional<int64_t> steps, const Complain& complain);

/// A moment of a training.
struct SchedulePoint {
  const ScheduleConfig& config;
  double peak = 0;       // training.optimizer.lr
  int64_t step = 0;      // from 0
  int64_t steps = 0;     // of the training
  int64_t d_model = 0;   // of the model (D)
  double time_used = 0;  // fraction of training.max_seconds, 0 without such a limit
};

/// A schedule. Programs add their own with schedule_types().add(). A type may have keys of its own:
///     schedule: {type: {type: staircase, every: 100}, warmup_steps: 10}
struct ScheduleType : TypeInfo {
  /// The learning rate of a step. The keys of the type are at.config.type.as<Keys>().
  std::function<double(const SchedulePoint& at)> rate;
};

inline std::string_view what_lacks(const ScheduleType& type) {
  return type.rate ? std::string_view() : "rate, which gives the learning rate of a step";
}

/// Holds those of ScheduleKind, and added ones.
Registry<ScheduleType>& schedule_types();

/// The learning rate of a step, by the schedule that the configuration selects.
double learning_rate(const SchedulePoint& at);

}  // namespace zoo
