#include "training/training_config.h"

#include <fmt/format.h>

namespace zoo {

void describe(ConfigVisitor& v, OptimizerConfig& c) {
  v.field("type", c.type, "adamw: decay apart from the gradient; adam, sgd: decay as part of it (L2).");
  v.field("lr", c.lr, "Peak learning rate; with the noam schedule a factor on its formula.",
          Limits::positive());
  v.field("betas", c.betas, "adamw, adam: decay rates of the means of gradients and of their squares.");
  v.field("eps", c.eps, "adamw, adam: added to the root of the mean square.", Limits::positive());
  v.field("weight_decay", c.weight_decay, "Pull of the weights towards zero.", Limits::at_least(0));
  v.field("decay_all", c.decay_all,
          "Decay norms and biases too, not only tensors of two and more dimensions.");
  v.field("momentum", c.momentum, "sgd: part of the last step that is repeated.", {.min = 0, .max = 0.9999});
}

void describe(ConfigVisitor& v, ScheduleConfig& c) {
  v.field("type", c.type, "The learning rate as a function of the step.");
  v.field("warmup_steps", c.warmup_steps, "Steps in which the learning rate rises to its peak.",
          Limits::at_least(0));
  v.field("decay_steps", c.decay_steps,
          "cosine, linear: step at which the minimum is reached, default training.steps; "
          "warmup_stable_decay: how "
          "many last steps decay, default a tenth of them.",
          Limits::at_least(1));
  v.field("min_lr_ratio", c.min_lr_ratio, "cosine, linear, warmup_stable_decay: final learning rate / peak.",
          Limits::between(0, 1));
}

void describe(ConfigVisitor& v, TrainingConfig& c) {
  v.field("seed", c.seed, "Of initial weights, data order and dropout.", Limits::at_least(0));
  v.field("steps", c.steps, "Optimiser steps.", Limits::at_least(1));
  v.field("batch_size", c.batch_size, "Sequences in a batch.", Limits::at_least(1));
  v.field("batch_tokens", c.batch_tokens,
          "Instead of batch_size: the most padded tokens in a batch, on its longer side.",
          Limits::at_least(1));
  v.field(
      "gradient_accumulation", c.gradient_accumulation,
      "Batches that make up one optimiser step: the effect of one large batch in the memory of a small one.",
      Limits::at_least(1));
  v.field("optimizer", c.optimizer, "How gradients become steps.");
  v.field("schedule", c.schedule, "The learning rate over time.");
  v.field("precision", c.precision, "Number format of the matrix products; auto is fp32.");
  v.field("clip_grad_norm", c.clip_grad_norm, "Longest gradient, as the norm over all parameters; 0 = any.",
          Limits::at_least(0));
  v.field("label_smoothing", c.label_smoothing,
          "Part of the target's probability that is spread over all classes.", {.min = 0, .max = 0.99});
  v.field("max_seconds", c.max_seconds,
          "Stop after this much time, evaluation included, as if it were the last step.", Limits::positive());
  v.field("log_every", c.log_every, "Steps from one row of training metrics to the next.",
          Limits::at_least(1));
  v.field("evaluate_every", c.evaluate_every, "Steps from one evaluation on the validation data to the next.",
          Limits::at_least(1));
  v.field("evaluate_batches", c.evaluate_batches, "Evaluate on this many batches at most; default on all.",
          Limits::at_least(1));
  v.field("checkpoint_every", c.checkpoint_every, "Steps from one checkpoint to the next.",
          Limits::at_least(1));
  v.field("keep_checkpoints", c.keep_checkpoints, "How many of the newest checkpoints are kept.",
          Limits::at_least(1));
  v.field("threads", c.threads, "CPU threads; 0 = one a core.", Limits::between(0, 1024));
}

void validate(const TrainingConfig& c, const Complain& complain) {
  const auto& betas = c.optimizer.betas;
  if (betas.size() != 2)
    complain("optimizer.betas", fmt::format("must be two numbers, not {}", betas.size()));
  for (const double beta : betas) {
    if (!(beta >= 0 && beta < 1))
      complain("optimizer.betas", fmt::format("must be >= 0 and < 1, not {}", beta));
  }
  if (c.optimizer.momentum > 0 && c.optimizer.type != OptimizerKind::sgd) {
    complain("optimizer.momentum", fmt::format("is for sgd; {} has betas", name_of(c.optimizer.type)));
  }
  const auto& schedule = c.schedule;
  const bool decays = schedule.type == ScheduleKind::cosine || schedule.type == ScheduleKind::linear ||
                      schedule.type == ScheduleKind::warmup_stable_decay;
  if (schedule.decay_steps && !decays) {
    complain("schedule.decay_steps", fmt::format("has no meaning for {}", name_of(schedule.type)));
  }
  if (schedule.type == ScheduleKind::noam && schedule.warmup_steps < 1) {
    complain("schedule.warmup_steps", "must be at least 1 for noam, whose formula divides by it");
  }
  if (schedule.type == ScheduleKind::warmup_stable_decay) {
    const int64_t decay = schedule.decay_steps.value_or(0);
    if (schedule.warmup_steps + decay > c.steps) {
      complain("schedule.decay_steps",
               fmt::format("{} and {} steps of warm-up are more than the {} of training", decay,
                           schedule.warmup_steps, c.steps));
    }
  } else if (schedule.decay_steps && *schedule.decay_steps < schedule.warmup_steps) {
    complain("schedule.decay_steps", fmt::format("{} lies within the {} steps of warm-up",
                                                 *schedule.decay_steps, schedule.warmup_steps));
  }
}

}  // namespace zoo
