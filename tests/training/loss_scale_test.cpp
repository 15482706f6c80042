// Training in fp16: when the scale of the loss changes, and that it changes nothing else.

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoints/checkpoint.h"
#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

using ::testing::StartsWith;

/// The rows of metrics of three plain steps, without clipping.
std::vector<nlohmann::json> three_steps(const char* precision) {
  const TinyWorld world;
  const auto experiment =
      world.experiment("language_modeling", {"training.steps=3", "training.log_every=1", "model.dropout=0",
                                             "training.clip_grad_norm=0",
                                             "training.optimizer={type: sgd, lr: 0.5, weight_decay: 0}",
                                             "training.schedule={type: constant, warmup_steps: 0}",
                                             std::string("training.precision=") + precision});
  return timeless_metrics(train(experiment, {.run_dir = world.path("run")}).run_dir);
}

TEST(TrainingInFp16, StepsAreThoseWithoutAScale) {
  const auto scaled = three_steps("fp16"), plain = three_steps("fp32");
  ASSERT_EQ(scaled.size(), plain.size());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(scaled[i].at("skipped_steps"), 0);
    for (const char* name : {"grad_norm", "train_loss"})
      EXPECT_NEAR(scaled[i].at(name).get<double>() / plain[i].at(name).get<double>(), 1, 0.01)
          << name << " of step " << i + 1;
  }
}

// The number of good steps is part of the checkpoint: a run that is stopped often needs a larger scale, too.
TEST(TrainingInFp16, TheScaleGrowsAfterManyGoodStepsOfARunThatWasStopped) {
  const TinyWorld world;
  const TrainOptions options{.run_dir = world.path("run"), .existing = ExistingRun::resume};
  const auto scale_after = [&](int64_t steps) {
    train(world.experiment("language_modeling",
                           {"training.precision=fp16", fmt::format("training.steps={}", steps)}),
          options);
    return read_training_state(world.path("run/checkpoints/last")).loss_scale;
  };
  const auto before = scale_after(4);
  EXPECT_EQ(before.value, LossScale::initial);
  EXPECT_EQ(before.good_steps, 4);

  // As if the run had been much longer.
  const auto file = world.path("run/checkpoints/last/state.json");
  auto state = nlohmann::json::parse(read_file(file));
  state["loss_scale_good_steps"] = LossScale::growth_interval - 2;
  std::ofstream(file) << state;
  const auto after = scale_after(6);
  EXPECT_EQ(after.value, LossScale::growth * LossScale::initial);
  EXPECT_EQ(after.good_steps, 0);
}

// The first step ruins the weights. Then no scale is small enough: from 2^16 to 2^-16 it is halved 32 times.
TEST(TrainingInFp16, AnOverflowAtTheLeastScaleIsAnError) {
  const TinyWorld world;
  const auto experiment = world.experiment(
      "language_modeling",
      {"training.precision=fp16", "training.optimizer={type: sgd, lr: 1e30}", "training.clip_grad_norm=0",
       "training.schedule={type: constant, warmup_steps: 0}", "training.steps=100",
       "training.evaluate_every=100", "training.checkpoint_every=100"});
  EXPECT_THAT(message_of<TrainingError>([&] { train(experiment, {.run_dir = world.path("run")}); }),
              StartsWith("step 34, epoch "));
}

}  // namespace
}  // namespace zoo::testing
