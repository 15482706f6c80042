// What a training measures and decides by the clock. No test expects a certain speed: each compares numbers
// that must agree, however fast the machine is.

#include <chrono>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/training.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

using namespace std::chrono_literals;

/// The rows of metrics.jsonl after training steps.
std::vector<nlohmann::json> training_rows(const std::filesystem::path& run) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    auto row = nlohmann::json::parse(line);
    if (row.contains("train_loss")) rows.push_back(std::move(row));
  }
  return rows;
}

// The trainer asks whether to stop once before the first step, and once in every step.
TEST(TrainerTime, TokensPerSecondAreOfTheStepsSinceTheLastReport) {
  constexpr auto delay = 100ms;
  constexpr double delay_seconds = 0.1;
  constexpr int64_t tokens_of_step = 2 * 4 * 24;
  const TinyWorld world;
  const auto experiment = world.experiment(
      "language_modeling",
      {"training.log_every=1", "training.evaluate_every=1000", "training.checkpoint_every=1000"});
  const auto train_slowly = [&](ExistingRun existing, int64_t slow_call, int64_t last_call) {
    int64_t call = 0;
    return train(experiment, {.run_dir = world.path("run"), .existing = existing, .should_stop = [&] {
                                if (++call == 2 || call == slow_call) std::this_thread::sleep_for(delay);
                                return call == last_call;
                              }});
  };
  // Steps 1 and 8 are slow, and after the stop step 11.
  EXPECT_EQ(train_slowly(ExistingRun::refuse, /*slow_call=*/9, /*last_call=*/11).step, 10);
  EXPECT_EQ(train_slowly(ExistingRun::resume, /*slow_call=*/2, /*last_call=*/-1).step, 20);

  const auto rows = training_rows(world.path("run"));
  ASSERT_EQ(rows.size(), 20);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto step = rows[i].at("step").get<int64_t>();
    const double busy = tokens_of_step / rows[i].at("tokens_per_second").get<double>();
    const double since = i > 0 ? rows[i - 1].at("seconds").get<double>() : 0;
    EXPECT_LE(busy, rows[i].at("seconds").get<double>() - since) << "step " << step;
    if (step == 1 || step == 8 || step == 11) {
      EXPECT_GE(busy, delay_seconds) << "step " << step;
    }
  }
}

// The rate of a step is chosen by the time at the end of the step before.
TEST(TrainerTime, TheLearningRateFallsWithTheTimeThatIsUsed) {
  constexpr double lr = 0.01, max_seconds = 0.5;
  const TinyWorld world;
  const auto experiment = world.experiment(
      "language_modeling",
      {fmt::format("training.max_seconds={}", max_seconds), fmt::format("training.optimizer.lr={}", lr),
       "training.schedule={type: linear, warmup_steps: 0}", "training.steps=1000000", "training.log_every=1",
       "training.evaluate_every=1000000", "training.checkpoint_every=1000000"});
  const auto result = train(experiment, {.run_dir = world.path("run"), .should_stop = [] {
                                           std::this_thread::sleep_for(10ms);  // few steps are enough
                                           return false;
                                         }});
  EXPECT_EQ(result.end, TrainEnd::out_of_time);
  const auto rows = training_rows(world.path("run"));
  for (size_t i = 2; i < rows.size(); ++i) {
    const auto left = [&](const auto& row) {
      return 1 - row.at("seconds").template get<double>() / max_seconds;
    };
    const double rate = rows[i].at("lr").get<double>() / lr;
    EXPECT_LE(rate, left(rows[i - 2]) + 1e-9) << "row " << i;
    EXPECT_GE(rate, left(rows[i - 1]) - 1e-4) << "row " << i;
  }
}

}  // namespace
}  // namespace zoo::testing
