#include "optimizers/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace zoo {
namespace {

/// The position of `step` between `begin` (0) and `end` (1).
double progress(int64_t step, int64_t begin, int64_t end) {
  if (step >= end) return 1;
  return static_cast<double>(step - begin) / static_cast<double>(end - begin);
}

double lowest(const SchedulePoint& at) { return at.peak * at.config.min_lr_ratio; }

/// How much of the decay from the warm-up to decay_steps is over, by steps or by time.
double decayed(const SchedulePoint& at) {
  const int64_t end = at.config.decay_steps.value_or(at.steps);
  return std::max(progress(at.step, at.config.warmup_steps, end), std::min(at.time_used, 1.0));
}

double linear_rate(const SchedulePoint& at) { return at.peak + (lowest(at) - at.peak) * decayed(at); }

double cosine_rate(const SchedulePoint& at) {
  return lowest(at) + 0.5 * (1 + std::cos(std::numbers::pi * decayed(at))) * (at.peak - lowest(at));
}

double stable_rate(const SchedulePoint& at) {
  const int64_t decay = at.config.decay_steps.value_or(std::max<int64_t>(at.steps / 10, 1));
  const int64_t begin = std::max(at.steps - decay, at.config.warmup_steps);
  // The decay takes the same last part of the time as of the steps.
  const double part = static_cast<double>(decay) / static_cast<double>(at.steps);
  const double by_time = (at.time_used - (1 - part)) / part;
  const double by_step = at.step < begin ? 0 : progress(at.step, begin, at.steps);
  return at.peak + (lowest(at) - at.peak) * std::clamp(std::max(by_step, by_time), 0.0, 1.0);
}

double noam_rate(const SchedulePoint& at) {
  const auto s = static_cast<double>(at.step + 1), w = static_cast<double>(at.config.warmup_steps);
  return at.peak / std::sqrt(static_cast<double>(at.d_model)) *
         std::min(1 / std::sqrt(s), s * std::pow(w, -1.5));
}

double inverse_sqrt_rate(const SchedulePoint& at) {
  const auto s = static_cast<double>(at.step + 1),
             w = static_cast<double>(std::max<int64_t>(at.config.warmup_steps, 1));
  return at.peak * std::min(s / w, std::sqrt(w / s));
}

ScheduleType schedule(ScheduleKind kind, std::string doc, std::function<double(const SchedulePoint&)> rate) {
  ScheduleType type;
  type.name = name_of(kind);
  type.doc = std::move(doc);
  type.rate = std::move(rate);
  return type;
}

/// A schedule for the steps after the warm-up.
ScheduleType after_warmup(ScheduleKind kind, std::string doc, double (*rate)(const SchedulePoint&)) {
  return schedule(kind, std::move(doc), [rate](const SchedulePoint& at) {
    const int64_t warmup = at.config.warmup_steps;
    if (at.step >= warmup) return rate(at);
    return at.peak * static_cast<double>(at.step + 1) / static_cast<double>(warmup + 1);
  });
}

std::vector<ScheduleType> library_schedules() {
  using enum ScheduleKind;
  return {after_warmup(constant, "Warm-up, then the peak.", [](const SchedulePoint& at) { return at.peak; }),
          after_warmup(linear, "Warm-up, then a straight line down to the minimum.", linear_rate),
          after_warmup(cosine, "Warm-up, then half a cosine down to the minimum.", cosine_rate),
          after_warmup(warmup_stable_decay, "Warm-up, the peak, and in the last steps a straight line down.",
                       stable_rate),
          schedule(noam, "Warm-up, then with the inverse root of the step; lr is a factor.", noam_rate),
          schedule(inverse_sqrt, "Warm-up to the peak, then with the inverse root of the step.",
                   inverse_sqrt_rate)};
}

}  // namespace

void describe(ConfigVisitor& v, ScheduleConfig& c) {
  v.selection("type", c.type, schedule_types(), "The learning rate as a function of the step.");
  v.field("warmup_steps", c.warmup_steps, "Steps in which the learning rate rises to its peak.",
          Limits::at_least(0));
  v.field("decay_steps", c.decay_steps,
          "cosine, linear: step at which the minimum is reached, default training.steps; "
          "warmup_stable_decay: number of last steps with decay, default a tenth of training.steps.",
          Limits::at_least(1));
  v.field("min_lr_ratio", c.min_lr_ratio, "cosine, linear, warmup_stable_decay: final learning rate / peak.",
          Limits::between(0, 1));
}

void validate(const ScheduleConfig& c, std::optional<int64_t> steps, const Complain& complain) {
  const auto& type = c.type;
  if (!type.kind()) return;  // an added schedule uses the keys that it needs
  const bool decays = type == ScheduleKind::cosine || type == ScheduleKind::linear ||
                      type == ScheduleKind::warmup_stable_decay;
  if (c.decay_steps && !decays) complain("decay_steps", fmt::format("has no meaning for {}", type.type));
  if (type == ScheduleKind::noam && c.warmup_steps < 1)
    complain("warmup_steps", "must be at least 1 for noam, whose formula divides by it");
  if (type == ScheduleKind::warmup_stable_decay && steps) {
    const int64_t decay = c.decay_steps.value_or(0);
    if (c.warmup_steps + decay > *steps) {
      complain("decay_steps", fmt::format("{} and {} steps of warm-up are more than the {} steps of training",
                                          decay, c.warmup_steps, *steps));
    }
  } else if (c.decay_steps && *c.decay_steps < c.warmup_steps) {
    complain("decay_steps",
             fmt::format("{} lies within the {} steps of warm-up", *c.decay_steps, c.warmup_steps));
  }
}

Registry<ScheduleType>& schedule_types() {
  static Registry<ScheduleType> types("schedule", library_schedules());
  return types;
}

double learning_rate(const SchedulePoint& at) { return schedule_types().at(at.config.type).rate(at); }

}  // namespace zoo
