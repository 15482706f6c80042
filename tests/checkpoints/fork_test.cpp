#include "checkpoints/fork.h"

#include <unistd.h>

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "checkpoints/run_directory.h"
#include "io/file_lock.h"
#include "io/files.h"
#include "io/json_document.h"
#include "tests/support/errors.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class Forks : public ::testing::Test {
 protected:
  Forks() { train(experiment({}), {.run_dir = run}); }

  Experiment experiment(std::vector<std::string> overrides) const {
    overrides.insert(overrides.begin(),
                     {"training.steps=12", "training.checkpoint_every=2", "training.keep_checkpoints=9",
                      "training.evaluate_every=3", "training.log_every=1", "model.dropout=0.1"});
    return world.experiment("language_modeling", overrides);
  }
  /// Leaves the run at a step and trains to the end, or until a step.
  TrainResult fork(int64_t step, const std::vector<std::string>& overrides = {}, int64_t until = 99) {
    int64_t done = 0;
    return train(experiment(overrides), {.run_dir = other,
                                         .existing = ExistingRun::replace,
                                         .from = ForkPoint{run, step},
                                         .on_progress = [&](const TrainProgress& now) { done = now.step; },
                                         .should_stop = [&] { return done >= until; }});
  }
  /// What is said of a fork that cannot be made.
  std::string problem(int64_t step, const std::vector<std::string>& overrides = {}) {
    return message_of<Error>([&] { fork(step, overrides); });
  }
  /// The rows of a run by their steps, without what depends on time.
  static std::multimap<int64_t, std::string> rows_of(const fs::path& dir) {
    std::multimap<int64_t, std::string> rows;
    std::istringstream lines(read_file(dir / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      auto row = parse_ordered_json(line);
      for (const char* const key : {"seconds", "tokens_per_second", "peak_memory_bytes"}) row.erase(key);
      rows.emplace(row["step"], row.dump());
    }
    return rows;
  }

  TinyWorld world;
  fs::path run = world.path("run"), other = world.path("other");
};

TEST_F(Forks, WithoutAChangeGivesTheSameBits) {
  for (const int64_t step : {2, 8, 10}) {
    fork(step);
    EXPECT_EQ(rows_of(other), rows_of(run)) << step;
    EXPECT_EQ(read_file(other / "model.safetensors"), read_file(run / "model.safetensors")) << step;
    EXPECT_EQ(read_file(other / "checkpoints/last/optimizer.safetensors"),
              read_file(run / "checkpoints/last/optimizer.safetensors"))
        << step;
  }
}

TEST_F(Forks, ChangesNothingBeforeTheStep) {
  const auto before = rows_of(run);
  fork(6, {"training.optimizer.lr=0.1"});
  EXPECT_EQ(rows_of(run), before);
  const auto rows = rows_of(other);
  const auto until = [](const auto& all) { return std::multimap(all.begin(), all.upper_bound(6)); };
  EXPECT_EQ(until(rows), until(before));
  EXPECT_EQ(rows.size(), before.size());
  EXPECT_NE(rows.find(7)->second, before.find(7)->second);
  EXPECT_NE(read_run_experiment(other).training.optimizer.lr, read_run_experiment(run).training.optimizer.lr);
}

TEST_F(Forks, HaveNoWeightsThatAreNewerThanTheirStep) {
  const auto best = read_training_state(*newest_checkpoint(run)).best_step;
  ASSERT_GT(best, 4);
  fork(4, {}, 4);
  EXPECT_EQ(fs::read_symlink(other / "checkpoints/last"), "step-4");
  EXPECT_FALSE(fs::exists(other / "model.safetensors"));
  fork(best, {"training.steps=14"}, best);
  EXPECT_EQ(read_file(other / "model.safetensors"), read_file(run / "model.safetensors"));
}

TEST_F(Forks, TakeTheirStartForTheBestWhereNothingBetterFollows) {
  const auto result = fork(4, {"training.optimizer.lr=1"});
  EXPECT_EQ(result.best_step, 4);
  EXPECT_EQ(read_file(other / "model.safetensors"), read_file(run / "checkpoints/step-4/model.safetensors"));
  for (const auto& row : metrics(other)) {
    if (!row.contains("valid_loss") || row["step"] <= 4) continue;
    EXPECT_GT(row["valid_loss"], *result.best_score);
  }
}

TEST_F(Forks, RefuseWhatWouldNotBeTheSameTraining) {
  EXPECT_THAT(problem(5), HasSubstr("no checkpoint of step 5, but of 2, 4, 6, 8, 10, 12"));
  EXPECT_THAT(problem(4, {"model.d_ff=20"}), HasSubstr("started with model.d_ff="));
  EXPECT_THAT(problem(12), HasSubstr("12 are wanted, but 12 are done"));
  EXPECT_THAT(problem(12, {"training.steps=5"}), HasSubstr("give at least 13"));
  EXPECT_FALSE(fs::exists(other));
  EXPECT_THAT(message_of<Error>([&] {
                train(experiment({"training.steps=5"}), {.run_dir = run, .existing = ExistingRun::resume});
              }),
              HasSubstr("5 are wanted, but 12 are done"));
  fs::remove(run / "samples.txt");
  fs::create_symlink("/etc/passwd", run / "samples.txt");
  EXPECT_THAT(problem(4), HasSubstr("a link"));
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(Forks, LeaveTheEarlierRunWhereTheyAreRefused) {
  fork(4, {"training.steps=6"});
  const auto earlier = rows_of(other);
  EXPECT_THAT(problem(4, {"training.matmul=tf32"}), HasSubstr("needs a GPU"));
  EXPECT_EQ(rows_of(other), earlier);
  fs::remove(run / "samples.txt");
  fs::create_symlink("/etc/passwd", run / "samples.txt");  // is found while the run is copied
  EXPECT_THAT(problem(4), HasSubstr("a link"));
  EXPECT_EQ(rows_of(other), earlier);
  fs::remove_all(other);
  const auto text = read_file(world.path("data/text.txt"));
  world.dir().write("data/text.txt", text.substr(text.find('\n') + 1));
  EXPECT_THAT(problem(4), HasSubstr("data have changed"));
  fs::remove(world.path("data/text.txt"));
  EXPECT_THAT(problem(4), HasSubstr("text.txt"));
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(Forks, ReplaceNothingButOtherRuns) {
  const auto problem_at = [&](const fs::path& to) {
    other = to;
    return problem(4);
  };
  const auto usual = other;
  EXPECT_THAT(problem_at(run), HasSubstr("the run that is left is there"));
  EXPECT_THAT(problem_at(run / "fork"), HasSubstr("the run that is left is there"));
  EXPECT_THAT(problem_at(run.parent_path()), HasSubstr("the run that is left is there"));
  write_file_atomically(usual, "precious");
  EXPECT_THAT(problem_at(usual), HasSubstr("exists, but is not a run"));
  EXPECT_EQ(read_file(usual), "precious");
  fs::remove(usual);
  fork(4);
  const FileLock training(other / kLockFile);
  EXPECT_THAT(problem_at(usual), HasSubstr(fmt::format("process {} is training this run", getpid())));
  EXPECT_TRUE(is_run(run));
}

}  // namespace
}  // namespace zoo::testing
