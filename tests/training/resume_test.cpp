// A run that is stopped or killed at any moment, or whose disk is full, goes on as if nothing had happened.

#include <signal.h>

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/embedders/resnet.h"
#include "tests/io/small_disk.h"
#include "tests/support/training.h"
#include "training/stop_signals.h"
#include "training/trainer.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;

TrainOptions resuming(const fs::path& run) { return {.run_dir = run, .existing = ExistingRun::resume}; }

/// The newest state of a training without what depends on the machine.
nlohmann::json timeless_state(const fs::path& run) {
  auto state = nlohmann::json::parse(read_file(run / "checkpoints/last/state.json"));
  for (const char* key : {"seconds", "peak_memory_bytes", "peak_resident_bytes"})
    EXPECT_EQ(state.erase(key), 1u) << key;
  return state;
}

/// Compares every tensor, row of metrics and sample to the last bit.
void expect_same_run(const fs::path& run, const fs::path& expected) {
  for (const char* file :
       {"model.safetensors", "checkpoints/last/model.safetensors", "checkpoints/last/optimizer.safetensors",
        "samples.txt", "config.yaml", "tokenizer.json", "labels.json", "pixels.json"}) {
    ASSERT_EQ(fs::exists(run / file), fs::exists(expected / file)) << file;
    if (!fs::exists(expected / file)) continue;
    EXPECT_TRUE(read_file(run / file) == read_file(expected / file)) << file;
  }
  EXPECT_EQ(timeless_state(run), timeless_state(expected));
  const fs::path average = "checkpoints/last/average.safetensors";
  ASSERT_EQ(fs::exists(run / average), fs::exists(expected / average));
  if (fs::exists(expected / average)) {
    EXPECT_TRUE(read_file(run / average) == read_file(expected / average));
  }
  EXPECT_EQ(timeless_metrics(run), timeless_metrics(expected));
  EXPECT_EQ(fs::read_symlink(run / "checkpoints/last"), fs::read_symlink(expected / "checkpoints/last"));
}

/// Trains the experiment to its end and stops at these steps on the way.
auto train_with_stops(const Experiment& experiment, const fs::path& run, const std::vector<int64_t>& steps) {
  auto options = resuming(run);
  int64_t done = 0;
  for (const int64_t at : steps) {
    options.should_stop = [&] { return done++ == at; };  // asked before the first step, and after each
    EXPECT_EQ(train(experiment, options).step, at);
    done = at;
  }
  return train(experiment, resuming(run));
}

class Resume : public ::testing::TestWithParam<const char*> {};

TEST_P(Resume, KilledAtAnyStepIsAsNeverKilled) {
  const TinyWorld world;
  const auto experiment = world.experiment(GetParam(), {"training.evaluate_at_start=true"});
  ASSERT_EQ(Child([&] { return train(experiment, {.run_dir = world.path("whole")}), 0; }).wait(), 0);

  struct Death {
    int64_t step;
    bool after_evaluation = false;
  };
  // Before the first checkpoint, at a checkpoint, between two, twice at the same step, around an evaluation,
  // at the last step.
  for (const auto& [step, after_evaluation] : std::vector<Death>{
           {1}, {4}, {6}, {7}, {7, true}, {7}, {13}, {14}, {14, true}, {18}, {20}, {20, true}}) {
    Child child([&, at = step, evaluated = after_evaluation] {
      auto options = resuming(world.path("run"));
      options.on_progress = [&](const TrainProgress& progress) {
        if (progress.step == at && progress.message.starts_with("step") == evaluated) ::raise(SIGKILL);
      };
      return train(experiment, options), 0;
    });
    ASSERT_EQ(child.wait(), -SIGKILL) << "at step " << step;
  }
  ASSERT_EQ(Child([&] { return train(experiment, resuming(world.path("run"))), 0; }).wait(), 0);
  expect_same_run(world.path("run"), world.path("whole"));
}

TEST_P(Resume, SignalsSaveAndEndWell) {
  const TinyWorld world;
  const auto experiment = world.experiment(GetParam());
  ASSERT_EQ(Child([&] { return train(experiment, {.run_dir = world.path("whole")}), 0; }).wait(), 0);

  for (const auto& [signal, step] : {std::pair(SIGTERM, 4), std::pair(SIGINT, 10)}) {
    Child child([&, s = signal, at = step] {
      const StopSignals signals;
      auto options = resuming(world.path("run"));
      options.should_stop = [&] { return signals.received(); };
      options.on_progress = [&](const TrainProgress& progress) {
        if (progress.step == at) ::raise(s);  // the step after it is the last
      };
      const auto result = train(experiment, options);
      return result.end == TrainEnd::interrupted && result.step == at + 1 ? 0 : 98;
    });
    ASSERT_EQ(child.wait(), 0);
    EXPECT_EQ(fs::read_symlink(world.path("run/checkpoints/last")), fmt::format("step-{}", step + 1));
  }
  ASSERT_EQ(Child([&] { return train(experiment, resuming(world.path("run"))), 0; }).wait(), 0);
  expect_same_run(world.path("run"), world.path("whole"));
}

INSTANTIATE_TEST_SUITE_P(Tasks, Resume,
                         ::testing::Values("language_modeling", "masked_language_modeling", "text_to_text",
                                           "text_classification", "token_classification",
                                           "image_classification", "object_detection", "speech_recognition",
                                           "speech_recognition_of_samples", "structure_prediction"),
                         [](const auto& test) { return std::string(test.param); });

// The moving average and the optimiser's state go on, and the mean is of the same checkpoints as without
// stops.
TEST(ResumeWithAverages, IsAsNeverStopped) {
  for (const char* optimizer :
       {"{type: adafactor, lr: 0.05}", "{type: lion, lr: 0.003}", "{type: muon, lr: 0.02}"}) {
    SCOPED_TRACE(optimizer);
    const TinyWorld world;
    const auto experiment = world.experiment(
        "language_modeling", {"training.ema_decay=0.8", "training.average_last=4",
                              fmt::format("training.optimizer={}", optimizer), "training.evaluate_every=20"});
    std::string message;
    auto options = TrainOptions{.run_dir = world.path("whole")};
    options.on_progress = [&](const auto& progress) {
      if (progress.message.starts_with("mean")) message = progress.message;
    };
    const auto whole = train(experiment, options);
    EXPECT_THAT(message, ::testing::StartsWith("mean of the weights at steps 20, 16, 12, 8: "));

    // Between checkpoints each stop leaves one more.
    const auto resumed = train_with_stops(experiment, world.path("run"), {1, 9, 10, 11, 17});
    EXPECT_EQ(resumed.step, 20);
    EXPECT_EQ(resumed.best_score, whole.best_score);
    expect_same_run(world.path("run"), world.path("whole"));
    // Once more: nothing is left to do, and nothing changes.
    EXPECT_EQ(train(experiment, resuming(world.path("run"))).best_score, whole.best_score);
    expect_same_run(world.path("run"), world.path("whole"));
  }
}

// Running means are no parameters, but training changes them.
TEST(ResumeWithRunningMeans, IsAsNeverStopped) {
  const TinyWorld world;
  auto experiment = world.image_experiment({"training.ema_decay=0.8", "training.average_last=3"});
  experiment.model.architecture = Selection(
      "resnet", ResnetConfig{.depth = ResnetDepth::layers_18, .width = 4, .stem_stride = StemStride::one});
  train(experiment, {.run_dir = world.path("whole")});
  train_with_stops(experiment, world.path("run"), {3, 14});
  expect_same_run(world.path("run"), world.path("whole"));
}

// The numbers that balance the experts are no parameters, but training changes them.
TEST(ResumeWithExperts, IsAsNeverStopped) {
  const TinyWorld world;
  for (const std::string experts :
       {"{count: 6, d_ff: 16, choice_bias: true, bias_rate: 0.01, balance: 0, router: sigmoid}",
        "{count: 6, d_ff: 16, balance_over: step, capacity: 1.25}"}) {
    SCOPED_TRACE(experts);
    const auto experiment =
        world.experiment("language_modeling", {"model.experts=" + experts, "training.ema_decay=0.8"});
    train(experiment, {.run_dir = world.path("whole"), .existing = ExistingRun::replace});
    std::filesystem::remove_all(world.path("run"));
    train_with_stops(experiment, world.path("run"), {3, 14});
    expect_same_run(world.path("run"), world.path("whole"));
  }
}

TEST(ResumeAtAnyMoment, IsAsNeverKilled) {
  const TinyWorld world;
  const auto experiment = world.experiment(
      "text_to_text", {"training.steps=12", "training.checkpoint_every=1", "training.evaluate_every=2",
                       "training.ema_decay=0.9", "training.average_last=3"});
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(Child([&] { return train(experiment, {.run_dir = world.path("whole")}), 0; }).wait(), 0);
  const auto whole = std::chrono::steady_clock::now() - start;

  int killed = 0;
  for (int i = 0; i < 8; ++i) {
    // Moments spread over the whole run, also while a checkpoint is being written.
    Child child([&] { return train(experiment, resuming(world.path("run"))), 0; });
    std::this_thread::sleep_for(whole * (1 + i * 3 % 8) / 9);
    ::kill(child.pid(), SIGKILL);
    const int code = child.wait();
    ASSERT_TRUE(code == 0 || code == -SIGKILL) << code;
    killed += code == -SIGKILL;
  }
  EXPECT_GT(killed, 0);
  ASSERT_EQ(Child([&] { return train(experiment, resuming(world.path("run"))), 0; }).wait(), 0);
  expect_same_run(world.path("run"), world.path("whole"));
  for (const auto& entry : fs::directory_iterator(world.path("run/checkpoints"))) {
    EXPECT_TRUE(entry.path().filename() == "last" || entry.path().filename().string().starts_with("step-"))
        << entry.path() << " is left over";
  }
}

TEST(StopSignals, TheSecondOneKills) {
  Child child([] {
    const StopSignals signals;
    ::raise(SIGTERM);
    if (!signals.received()) return 98;
    ::raise(SIGTERM);
    return 97;
  });
  EXPECT_EQ(child.wait(), -SIGTERM);
}

TEST(StopSignals, AreForgottenAfterwards) {
  Child child([] {
    ::signal(SIGINT, SIG_DFL);  // in a background job of a shell it is ignored
    {
      const StopSignals signals;
    }
    ::raise(SIGINT);
    return 97;
  });
  EXPECT_EQ(child.wait(), -SIGINT);
}

// The disk is full when step 8 is to be saved: one line of error, exit code 1, and the run can go on from
// step 4.
TEST(FullDisk, LosesNothing) {
  const TinyWorld world;
  const auto experiment = world.experiment("language_modeling");
  ASSERT_EQ(Child([&] { return train(experiment, {.run_dir = world.path("whole")}), 0; }).wait(), 0);

  const auto errors = world.path("errors");
  Child child([&] {
    std::unique_ptr<SmallDisk> disk;
    auto options = resuming(world.path("run"));
    options.on_progress = [&](const TrainProgress& progress) {
      if (progress.step == 5) disk = std::make_unique<SmallDisk>(8000);
    };
    try {
      train(experiment, options);
      return 0;
    } catch (const Error& error) {
      disk.reset();
      std::ofstream(errors) << error.what();
      return error.exit_code();
    }
  });
  EXPECT_EQ(child.wait(), 1);
  const auto message = read_file(errors);
  EXPECT_THAT(message, ::testing::HasSubstr("model.safetensors"));
  EXPECT_THAT(message, ::testing::HasSubstr("File too large"));
  EXPECT_EQ(message.find('\n'), message.npos);
  EXPECT_EQ(fs::read_symlink(world.path("run/checkpoints/last")), "step-4");
  for (const auto& entry : fs::recursive_directory_iterator(world.path("run"))) {
    EXPECT_EQ(entry.path().string().find(".new"), std::string::npos) << entry.path();
  }
  ASSERT_EQ(Child([&] { return train(experiment, resuming(world.path("run"))), 0; }).wait(), 0);
  expect_same_run(world.path("run"), world.path("whole"));
}

}  // namespace
}  // namespace zoo::testing
