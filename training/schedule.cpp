#include "training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zoo {
namespace {

/// The position of `step` between `begin` (0) and `end` (1).
double progress(int64_t step, int64_t begin, int64_t end) {
  if (step >= end) return 1;
  return static_cast<double>(step - begin) / static_cast<double>(end - begin);
}

}  // namespace

double learning_rate(const TrainingConfig& config, int64_t d_model, int64_t step, double time_used) {
  const auto& schedule = config.schedule;
  const double peak = config.optimizer.lr;
  const double lowest = peak * schedule.min_lr_ratio;
  const int64_t warmup = schedule.warmup_steps;
  const auto s = static_cast<double>(step + 1);

  if (schedule.type == ScheduleKind::noam) {
    const auto w = static_cast<double>(warmup);
    return peak / std::sqrt(static_cast<double>(d_model)) * std::min(1 / std::sqrt(s), s * std::pow(w, -1.5));
  }
  if (schedule.type == ScheduleKind::inverse_sqrt) {
    const auto w = static_cast<double>(std::max<int64_t>(warmup, 1));
    return peak * std::min(s / w, std::sqrt(w / s));
  }
  if (step < warmup) return peak * s / static_cast<double>(warmup + 1);

  const int64_t end = schedule.decay_steps.value_or(config.steps);
  const double decayed = std::max(progress(step, warmup, end), std::min(time_used, 1.0));
  switch (schedule.type) {
    case ScheduleKind::linear:
      return peak + (lowest - peak) * decayed;
    case ScheduleKind::cosine:
      return lowest + 0.5 * (1 + std::cos(std::numbers::pi * decayed)) * (peak - lowest);
    case ScheduleKind::warmup_stable_decay: {
      const int64_t decay = schedule.decay_steps.value_or(std::max<int64_t>(config.steps / 10, 1));
      const int64_t begin = std::max(config.steps - decay, warmup);
      // The decay takes the same last part of the time as of the steps.
      const double part = static_cast<double>(decay) / static_cast<double>(config.steps);
      const double by_time = (time_used - (1 - part)) / part;
      const double by_step = step < begin ? 0 : progress(step, begin, config.steps);
      return peak + (lowest - peak) * std::clamp(std::max(by_step, by_time), 0.0, 1.0);
    }
    default:
      return peak;
  }
}

}  // namespace zoo
