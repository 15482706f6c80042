#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tasks/training_config.h"

namespace zoo {
namespace {

TrainingConfig config(ScheduleKind type, double lr, int64_t steps, int64_t warmup) {
  TrainingConfig c;
  c.steps = steps;
  c.optimizer.lr = lr;
  c.schedule.type = type;
  c.schedule.warmup_steps = warmup;
  return c;
}

double learning_rate(const TrainingConfig& c, int64_t d_model, int64_t step, double time_used = 0) {
  return c.learning_rate(d_model, step, time_used);
}

// train.py of nanoGPT with learning_rate 1e-3, min_lr 1e-4, warmup_iters 100, lr_decay_iters 2000.
TEST(Schedule, CosineIsThatOfNanoGpt) {
  auto c = config(ScheduleKind::cosine, 1e-3, 2000, 100);
  c.schedule.min_lr_ratio = 0.1;
  const auto nano_gpt = [](int it) {
    if (it < 100) return 1e-3 * (it + 1) / 101;
    if (it > 2000) return 1e-4;
    return 1e-4 + 0.5 * (1.0 + std::cos(M_PI * (it - 100) / 1900.0)) * (1e-3 - 1e-4);
  };
  for (const int it : {0, 1, 50, 99, 100, 101, 777, 1050, 1999, 2000, 2500}) {
    EXPECT_DOUBLE_EQ(learning_rate(c, 128, it), nano_gpt(it)) << it;
  }
  EXPECT_DOUBLE_EQ(learning_rate(c, 128, 1050), 5.5e-4);  // half way down
}

TEST(Schedule, CosineEndsWhereItIsTold) {
  auto c = config(ScheduleKind::cosine, 1.0, 100, 0);
  c.schedule.decay_steps = 50;
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 0), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 25), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 50), 0.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 99), 0.0);
}

// "Attention is all you need", equation 3: d_model 512, 4000 steps of warm-up.
TEST(Schedule, NoamIsThatOfThePaper) {
  const auto c = config(ScheduleKind::noam, 1.0, 100000, 4000);
  EXPECT_NEAR(learning_rate(c, 512, 0), 1.746928107421711e-07, 1e-18);
  EXPECT_NEAR(learning_rate(c, 512, 3999), 6.987712429686843e-04, 1e-15);  // the peak
  EXPECT_NEAR(learning_rate(c, 512, 15999), 3.493856214843422e-04, 1e-15);
  EXPECT_GT(learning_rate(c, 512, 3999), learning_rate(c, 512, 3998));
  EXPECT_GT(learning_rate(c, 512, 3999), learning_rate(c, 512, 4000));
}

TEST(Schedule, InverseSquareRoot) {
  const auto c = config(ScheduleKind::inverse_sqrt, 1e-3, 100000, 4000);
  EXPECT_DOUBLE_EQ(learning_rate(c, 512, 0), 1e-3 / 4000);
  EXPECT_DOUBLE_EQ(learning_rate(c, 512, 1999), 0.5e-3);
  EXPECT_DOUBLE_EQ(learning_rate(c, 512, 3999), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(c, 512, 15999), 0.5e-3);
  EXPECT_DOUBLE_EQ(learning_rate(config(ScheduleKind::inverse_sqrt, 1.0, 10, 0), 512, 3), 0.5);  // no warm-up
}

TEST(Schedule, LinearAndConstant) {
  auto c = config(ScheduleKind::linear, 2.0, 110, 10);
  c.schedule.min_lr_ratio = 0.5;
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 9), 2.0 * 10 / 11);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 10), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 60), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 110), 1.0);
  c.schedule.type = ScheduleKind::constant;
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 9), 2.0 * 10 / 11);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 109), 2.0);
}

TEST(Schedule, WarmupStableDecay) {
  auto c = config(ScheduleKind::warmup_stable_decay, 1.0, 100, 4);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 1), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 4), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 90), 1.0);  // the decay takes the last tenth of the steps
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 95), 0.5);
  c.schedule.decay_steps = 50;
  c.schedule.min_lr_ratio = 0.2;
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 49), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 75), 0.6);
}

// By default the decay takes the last tenth of the steps, but it never begins before the warm-up has ended.
TEST(Schedule, DecayBeginsAfterALongWarmup) {
  const auto c = config(ScheduleKind::warmup_stable_decay, 1.0, 100, 96);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 95), 96.0 / 97);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 96), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 98), 0.5);
  for (const auto type : {ScheduleKind::linear, ScheduleKind::cosine}) {
    const auto other = config(type, 1.0, 100, 96);
    EXPECT_DOUBLE_EQ(learning_rate(other, 1, 96), 1.0);
    EXPECT_DOUBLE_EQ(learning_rate(other, 1, 98), 0.5);
  }
}

// With a limit of time, the decay follows the time if that runs out before the steps do.
TEST(Schedule, DecayEndsWithTheTime) {
  auto linear = config(ScheduleKind::linear, 2.0, 1000, 0), cosine = linear;
  linear.schedule.min_lr_ratio = cosine.schedule.min_lr_ratio = 0.1;
  cosine.schedule.type = ScheduleKind::cosine;
  for (const double used : {0.0, 0.25, 0.5, 0.9, 1.0, 1.7}) {
    const double decayed = std::min(used, 1.0);
    EXPECT_DOUBLE_EQ(learning_rate(linear, 1, 0, used), 2.0 - 1.8 * decayed) << used;
    EXPECT_DOUBLE_EQ(learning_rate(cosine, 1, 0, used), 0.2 + 0.9 * (1 + std::cos(M_PI * decayed))) << used;
  }
  // The steps are further than the time.
  EXPECT_DOUBLE_EQ(learning_rate(linear, 1, 500, 0.25), 1.1);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 1, 500, 0.25), 1.1);

  auto stable = config(ScheduleKind::warmup_stable_decay, 1.0, 1000, 0);
  stable.schedule.decay_steps = 200;  // a fifth of the steps, and so of the time
  EXPECT_DOUBLE_EQ(learning_rate(stable, 1, 10, 0.8), 1.0);
  EXPECT_NEAR(learning_rate(stable, 1, 10, 0.85), 0.75, 1e-12);
  EXPECT_NEAR(learning_rate(stable, 1, 900, 0.85), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(stable, 1, 10, 1.0), 0.0, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(stable, 1, 10, 1.7), 0.0);
}

TEST(Schedule, TimeChangesNeitherTheWarmupNorARateWithoutEnd) {
  for (const auto type : {ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                          ScheduleKind::warmup_stable_decay}) {
    const auto c = config(type, 1.0, 100, 9);
    EXPECT_DOUBLE_EQ(learning_rate(c, 1, 4, 0.95), 0.5);
  }
  for (const auto type : {ScheduleKind::constant, ScheduleKind::noam, ScheduleKind::inverse_sqrt}) {
    const auto c = config(type, 1.0, 100, 9);
    EXPECT_DOUBLE_EQ(learning_rate(c, 4, 50, 0.95), learning_rate(c, 4, 50));
  }
}

}  // namespace
}  // namespace zoo
