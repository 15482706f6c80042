// A run made from the mean of another run's checkpoints.

#include "checkpoints/average_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/run.h"
#include "io/safetensors.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AverageRun : public ::testing::Test {
 protected:
  AverageRun() {
    train(world.experiment("language_modeling", {"training.steps=8", "training.checkpoint_every=2",
                                                 "training.keep_checkpoints=4", "training.evaluate_every=4"}),
          {.run_dir = run});
  }
  SafetensorsFile checkpoint(int step) const {
    return SafetensorsFile(run / fmt::format("checkpoints/step-{}/model.safetensors", step));
  }

  TinyWorld world;
  fs::path run = world.path("run");
};

TEST_F(AverageRun, WritesARunWithTheMean) {
  const auto averaged = average_run(run, {.out = world.path("somewhere/else"), .last = 3});
  EXPECT_EQ(averaged.run_dir, world.path("somewhere/else"));
  EXPECT_THAT(averaged.steps, ElementsAre(8, 6, 4));

  const auto a = checkpoint(8), b = checkpoint(6), c = checkpoint(4);
  const SafetensorsFile mean(averaged.run_dir / "model.safetensors");
  EXPECT_EQ(mean.names(), a.names());
  for (const auto& name : mean.names()) {
    const auto expected = (a.tensor(name).to(torch::kDouble) + b.tensor(name) + c.tensor(name)) / 3;
    EXPECT_LT((mean.tensor(name) - expected).abs().max().item<double>(), 1e-6) << name;
  }

  // Opening the runs gives the same two losses.
  EXPECT_EQ(Run::open(run).evaluate(Split::valid).at("loss"), averaged.loss_before);
  const auto opened = Run::open(averaged.run_dir);
  EXPECT_EQ(opened.evaluate(Split::valid).at("loss"), averaged.loss);
  EXPECT_NE(averaged.loss, averaged.loss_before);
  EXPECT_EQ(opened.tokenizer().vocab_size(), Run::open(run).tokenizer().vocab_size());
}

TEST_F(AverageRun, TakesAllCheckpointsUnlessTold) {
  const auto averaged = average_run(run.string() + "/");
  EXPECT_EQ(averaged.run_dir, world.path("run-average"));
  EXPECT_THAT(averaged.steps, ElementsAre(8, 6, 4, 2));
  EXPECT_THAT(message_of<UsageError>([&] { average_run(run); }),
              AllOf(HasSubstr("run-average: exists already"), HasSubstr("AverageOptions::out")));
}

TEST_F(AverageRun, SaysWhatCannotBeAveraged) {
  const auto problem = [&](std::optional<int64_t> last) {
    return message_of<CheckpointError>([&] { average_run(run, {.out = {}, .last = last}); });
  };
  EXPECT_THAT(message_of<UsageError>([&] { average_run(run, {.out = {}, .last = 5}); }),
              HasSubstr("has kept 4 checkpoints, not 5: average 4 or fewer"));
  EXPECT_THAT(message_of<UsageError>([&] { average_run(run, {.out = {}, .last = 1}); }),
              HasSubstr("AverageOptions::last 1"));
  EXPECT_THAT(message_of<CheckpointError>([&] { average_run(world.path("nowhere")); }),
              HasSubstr("no such run"));

  // One of the checkpoints has another architecture.
  train(world.experiment("language_modeling",
                         {"training.steps=6", "training.checkpoint_every=6", "model.d_ff=48"}),
        {.run_dir = world.path("other")});
  fs::copy_file(world.path("other/checkpoints/step-6/model.safetensors"),
                run / "checkpoints/step-6/model.safetensors", fs::copy_options::overwrite_existing);
  EXPECT_THAT(problem(3), AllOf(HasSubstr("step-6"), HasSubstr("another architecture")));

  for (int step : {2, 4, 6}) fs::remove_all(run / fmt::format("checkpoints/step-{}", step));
  EXPECT_THAT(problem(std::nullopt), HasSubstr("has one checkpoint"));
  EXPECT_FALSE(fs::exists(world.path("run-average")));
}

}  // namespace
}  // namespace zoo::testing
