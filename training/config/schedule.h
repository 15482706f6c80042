#pragma once
// The learning rate as a pure function of the step, and of the time where that is limited.

#include <cstdint>

#include "training/config/training_config.h"

namespace zoo {

/// The learning rate of optimiser step `step`, counted from 0. With lr the peak, W = warmup_steps, s = step +
/// 1:
///   constant             lr, after the warm-up
///   linear               from lr to min_lr_ratio·lr at decay_steps
///   cosine               half a cosine from lr to min_lr_ratio·lr at decay_steps, as nanoGPT
///   warmup_stable_decay  lr, then in the last decay_steps linearly to min_lr_ratio·lr (MiniCPM, Hu et al.
///   2024) noam                 lr·D^-0.5·min(s^-0.5, s·W^-1.5) (Vaswani et al. 2017, section 5.3)
///   inverse_sqrt         lr·min(s/W, √(W/s)) (fairseq, T5)
/// The warm-up of the first four is lr·s/(W + 1), nanoGPT's: the first step is not wasted on a rate of 0.
/// `time_used` is the part of training.max_seconds that is over, 0 without such a limit: linear, cosine and
/// warmup_stable_decay end when either the steps or the time do.
double learning_rate(const TrainingConfig& config, int64_t d_model, int64_t step, double time_used = 0);

}  // namespace zoo
