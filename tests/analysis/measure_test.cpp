#include "costs/measure.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/initial_weights.h"
#include "tests/support/fake_models.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// These tests check that measurements are consistent, not how fast anything is.

const MeasureOptions kQuick{.seconds = 0.01};

// Longer than a busy machine keeps a process waiting for its turn.
constexpr std::chrono::milliseconds kLong{1500};
constexpr double kLongSeconds = 1.5;

TEST(MeasureTimes, LeavesOutTheFirstTimeAndRepeatsThreeTimes) {
  int calls = 0;
  const auto slow_at_first = [&] {
    if (++calls == 1) std::this_thread::sleep_for(kLong);
  };
  EXPECT_LT(measure_times(slow_at_first, torch::kCPU, 0).median, kLongSeconds);
  EXPECT_EQ(calls, 4);
}

TEST(MeasureTimes, EndsBetweenRepeatsWhereItIsTold) {
  int calls = 0;
  const auto stopped = [&] { return calls == 2; };
  EXPECT_THROW(measure_times([&] { ++calls; }, torch::kCPU, /*budget=*/1000, stopped), MeasurementStopped);
  EXPECT_EQ(calls, 2);
}

TEST(MeasureTimes, IsNotMovedByOneDisturbance) {
  int calls = 0;
  const auto disturbed = [&] {
    if (++calls == 3) std::this_thread::sleep_for(kLong);
  };
  EXPECT_LT(measure_times(disturbed, torch::kCPU, 0).median, kLongSeconds);
}

TEST(MeasureTimes, IsWhatTheWorkTakesUntilTheBudgetIsSpent) {
  int calls = 0;
  const auto work = [&] {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const auto times = measure_times(work, torch::kCPU, 0.05);
  EXPECT_GE(times.low, 0.002);
  EXPECT_GE(times.median, times.low);
  EXPECT_GE(times.high, times.median);
  EXPECT_GT(calls, 4);
  EXPECT_LE(calls, 27);
}

class MeasureSpeed : public ::testing::Test {
 protected:
  Speed measure(const Experiment& experiment, const MeasureOptions& options = kQuick) const {
    return measure_speed(*task_of_new_run(experiment), torch::kCPU, options);
  }
  const TinyWorld world_;
};

int64_t parameter_bytes(const Experiment& experiment) {
  int64_t bytes = 0;
  for (const auto& parameter : initialized_model(experiment, *task_of_new_run(experiment))->parameters())
    bytes += static_cast<int64_t>(parameter.nbytes());
  return bytes;
}

void expect_training(const TrainingSpeed& speed) {
  EXPECT_GT(speed.step_seconds, 0);
  EXPECT_NEAR(speed.tokens_per_second * speed.step_seconds / speed.tokens_per_step, 1, 1e-9);
}

TEST_F(MeasureSpeed, OfALanguageModel) {
  const auto experiment = world_.experiment("language_modeling");
  const auto speed = measure(experiment);
  expect_training(speed.train);
  EXPECT_EQ(speed.train.tokens_per_step, 2 * 4 * 24) << "two batches of four windows";
  ASSERT_TRUE(speed.prompt && speed.decode);
  EXPECT_GT(speed.prompt->tokens_per_second, 0);
  EXPECT_EQ(speed.prompt->prompts, 8);
  EXPECT_EQ(speed.prompt->length, 24);
  EXPECT_GT(speed.decode->tokens_per_second, 0);
  EXPECT_GT(speed.decode->first_token_seconds, 0);
  EXPECT_EQ(speed.decode->prompt_length, 12);
  EXPECT_EQ(speed.decode->n_tokens, 12);
}

TEST_F(MeasureSpeed, OfModelsThatDoNotGenerateIsThatOfTrainingAlone) {
  for (const char* task : {"masked_language_modeling", "text_classification"}) {
    SCOPED_TRACE(task);
    const auto speed = measure(world_.experiment(task));
    expect_training(speed.train);
    EXPECT_FALSE(speed.prompt || speed.decode);
  }
  const auto decoder = world_.experiment("text_classification", {"model.architecture=decoder"});
  EXPECT_FALSE(measure(decoder).prompt);
}

TEST_F(MeasureSpeed, EndsInEveryPartWhereItIsTold) {
  const auto task = task_of_new_run(world_.experiment("language_modeling"));
  int asked = 0;  // how often a whole measurement asks
  MeasureOptions options{.seconds =
                             0};  // three repeats of each, so the number of questions is always the same
  options.should_stop = [&] { return ++asked < 0; };
  measure_speed(*task, torch::kCPU, options);
  const int all = asked;
  for (int last = 1; last <= all; last += std::max(1, all / 8)) {
    asked = 0;
    options.should_stop = [&] { return ++asked == last; };
    EXPECT_THROW(measure_speed(*task, torch::kCPU, options), MeasurementStopped) << last << " of " << all;
    EXPECT_EQ(asked, last);
  }
}

TEST_F(MeasureSpeed, OfAnEncoderDecoder) {
  const auto speed = measure(world_.experiment("text_to_text"), {.seconds = 0, .length = 32});
  expect_training(speed.train);
  ASSERT_TRUE(speed.prompt && speed.decode);
  EXPECT_EQ(speed.prompt->length, 32);
  EXPECT_EQ(speed.decode->n_tokens, 16);
}

TEST_F(MeasureSpeed, CountsTheTokensThatTrainingCounts) {
  for (const char* task : {"language_modeling", "text_to_text", "text_classification"}) {
    SCOPED_TRACE(task);
    const auto experiment = world_.experiment(task, {"training.steps=1", "training.log_every=1"});
    const auto run = train(experiment, {.run_dir = world_.path(task)}).run_dir;
    // No budget: rounds of one step, which is the first.
    const auto speed = measure(experiment, {.seconds = 0});
    EXPECT_EQ(speed.train.tokens_per_step, timeless_metrics(run).front()["tokens"].get<double>());
  }
}

TEST_F(MeasureSpeed, CountsWeightsGradientsAndOptimiserInTheMemory) {
  const std::vector<std::string> one_token = {"data.sequence_length=4", "training.batch_size=1",
                                              "model.d_model=64"};
  const auto peak = [&](std::vector<std::string> more) {
    more.insert(more.end(), one_token.begin(), one_token.end());
    const auto experiment = world_.experiment("language_modeling", more);
    return static_cast<double>(measure(experiment, {.seconds = 0}).train.peak_memory_bytes) /
           static_cast<double>(parameter_bytes(experiment));
  };
  // Weights, gradients and two moments, and little else: only the tensors that single layers hold at a time.
  const double adam = peak({}), sgd = peak({"training.optimizer.type=sgd"});
  EXPECT_GE(adam, 4.0);
  EXPECT_LT(adam, 5.5);
  EXPECT_GE(sgd, 2.0);
  EXPECT_NEAR(adam - sgd, 2.0, 0.2);
}

TEST_F(MeasureSpeed, IsOfMoreMemoryWithLargerBatches) {
  const auto peak = [&](const char* size) {
    return measure(world_.experiment("language_modeling", {size}), {.seconds = 0}).train.peak_memory_bytes;
  };
  EXPECT_GT(peak("training.batch_size=16"), 2 * peak("training.batch_size=4"));
}

TEST_F(MeasureSpeed, CountsTheMemoryOfTheLargestBatchHoweverLongItMeasures) {
  // Sentences differ in length. Without a budget few batches are timed, but the costliest of all is found.
  const std::vector<std::string> pairs = {"training.batch_size=2", "training.gradient_accumulation=1",
                                          "data.bucket_by_length=true"};
  const auto experiment = world_.experiment("text_to_text", pairs);
  const auto peak = [&](double seconds) {
    return measure(experiment, {.seconds = seconds}).train.peak_memory_bytes;
  };
  EXPECT_EQ(peak(0), peak(0.1));

  // An epoch of training sees every batch.
  auto whole = experiment;
  whole.training.steps = task_of_new_run(experiment)->batches(Split::train).n_batches(0);
  whole.training.log_every = whole.training.steps;
  const auto rows = metrics(train(whole, {.run_dir = world_.path("whole")}).run_dir);
  const auto last =
      std::find_if(rows.rbegin(), rows.rend(), [](const auto& row) { return row.contains("train_loss"); });
  ASSERT_NE(last, rows.rend());
  EXPECT_NEAR(static_cast<double>(peak(0)) / last->at("peak_memory_bytes").template get<double>(), 1, 0.01);
}

TEST_F(MeasureSpeed, LeavesTheDataAsTheyAre) {
  const auto experiment = world_.experiment("language_modeling");
  const auto task = task_of_new_run(experiment);
  const auto before = task->batches(Split::train).batch(0, 0).input.ids.clone();
  measure_speed(*task, torch::kCPU, kQuick);
  EXPECT_TRUE(torch::equal(task->batches(Split::train).batch(0, 0).input.ids, before));
}

TEST_F(MeasureSpeed, SurvivesAModelThatLearningWouldRuin) {
  const auto experiment = world_.experiment("language_modeling", {"training.optimizer.lr=1e30"});
  EXPECT_TRUE(measure(experiment, {.seconds = 0}).decode);
}

TEST_F(MeasureSpeed, OfAShortSequenceStillHasASecondToken) {
  const auto speed = measure(world_.experiment("language_modeling"), {.seconds = 0, .length = 1});
  EXPECT_EQ(speed.decode->prompt_length, 1);
  EXPECT_EQ(speed.decode->n_tokens, 2);
}

TEST_F(MeasureSpeed, RefusesALengthThatTheModelCannotReach) {
  const auto experiment = world_.experiment("language_modeling");
  EXPECT_THAT(message_of<UsageError>([&] { measure(experiment, {.length = 33}); }),
              AllOf(HasSubstr("33"), HasSubstr("model.max_positions, 32")));
  EXPECT_THAT(message_of<UsageError>([&] { measure(experiment, {.length = 0}); }), HasSubstr("1 or more"));
}

/// A model that takes long to read a prompt.
class SlowReader final : public BigramModel {
 public:
  static constexpr std::chrono::milliseconds kDelay = kLong;

  SlowReader() : BigramModel(torch::eye(5)) {}
  torch::Tensor forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) override {
    if (tokens.length() > 1) std::this_thread::sleep_for(kDelay);
    return BigramModel::forward(tokens, state, at);
  }
};

TEST(MeasureDecode, TheTimeOfTheFirstTokenIsNotPartOfTheSpeed) {
  SlowReader model;
  const auto speed = measure_decode(model, 5, torch::kCPU, /*length=*/24, /*seconds=*/0);
  const double delay = std::chrono::duration<double>(SlowReader::kDelay).count();
  EXPECT_GE(speed.first_token_seconds, delay);
  EXPECT_LT(static_cast<double>(speed.n_tokens - 1) / speed.tokens_per_second, delay);
}

}  // namespace
}  // namespace zoo::testing
