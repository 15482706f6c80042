#pragma once
// The learning rate as a pure function of the step and, if the time is limited, of the time.

#include <cstdint>

#include "tasks/training_config.h"

namespace zoo {

/// The learning rate of optimiser step `step` ≥ 0. With the peak lr, W = warmup_steps and s = step + 1:
///   constant             lr, after the warm-up
///   linear               from lr to min_lr_ratio·lr at decay_steps
///   cosine               half a cosine from lr to min_lr_ratio·lr at decay_steps, as in nanoGPT
///   warmup_stable_decay  lr, then in the last decay_steps linearly to min_lr_ratio·lr (Hu et al. 2024)
///   noam                 lr·D^-0.5·min(s^-0.5, s·W^-1.5) (Vaswani et al. 2017, section 5.3)
///   inverse_sqrt         lr·min(s/W, √(W/s)) (fairseq, T5)
/// The first four begin with nanoGPT's warm-up lr·s/(W + 1), which does not waste the first step on a rate of
/// 0. `time_used` is the used fraction of training.max_seconds, 0 without such a limit. linear, cosine and
/// warmup_stable_decay reach their end when either the steps or the time end.
double learning_rate(const TrainingConfig& config, int64_t d_model, int64_t step, double time_used = 0);

}  // namespace zoo
