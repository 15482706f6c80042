#include "checkpoints/fork_run.h"

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

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
  /// Leaves the run at a step and trains to the end.
  void fork(int64_t step, const std::vector<std::string>& overrides = {}) {
    fork_run(run, step, experiment(overrides), other, ExistingFork::replace);
    train(experiment(overrides), {.run_dir = other, .existing = ExistingRun::resume});
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
  for (const int64_t step : {2, 8, 12}) {
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
  fork_run(run, 4, experiment({}), other, ExistingFork::refuse);
  EXPECT_FALSE(fs::exists(other / "model.safetensors"));
  EXPECT_EQ(fs::read_symlink(other / "checkpoints/last"), "step-4");
  const auto state = read_training_state(other / "checkpoints/step-4");
  EXPECT_FALSE(state.best_score);
  EXPECT_EQ(state.best_step, 4);
  fork_run(run, best, experiment({}), other, ExistingFork::replace);
  EXPECT_TRUE(fs::exists(other / "model.safetensors"));
}

TEST_F(Forks, RefuseWhatWouldNotBeTheSameTraining) {
  const auto problem = [&](int64_t step, const std::vector<std::string>& overrides) {
    return message_of<Error>(
        [&] { fork_run(run, step, experiment(overrides), other, ExistingFork::refuse); });
  };
  EXPECT_THAT(problem(5, {}), HasSubstr("no checkpoint of step 5, but of 2, 4, 6, 8, 10, 12"));
  EXPECT_THAT(problem(4, {"model.d_ff=20"}), HasSubstr("started with model.d_ff="));
  EXPECT_FALSE(fs::exists(other));
  fs::create_directory(other);
  EXPECT_THAT(problem(4, {}), HasSubstr("exists"));
  fs::remove(other);
  fs::remove(run / "samples.txt");
  fs::create_symlink("/etc/passwd", run / "samples.txt");
  EXPECT_THAT(problem(4, {}), HasSubstr("a link"));
  EXPECT_FALSE(fs::exists(other));
}

TEST_F(Forks, ReplaceNothingButOtherRuns) {
  const auto problem = [&](const fs::path& to) {
    return message_of<Error>([&] { fork_run(run, 4, experiment({}), to, ExistingFork::replace); });
  };
  EXPECT_THAT(problem(run), HasSubstr("the run that is left is there"));
  EXPECT_THAT(problem(run / "fork"), HasSubstr("the run that is left is there"));
  EXPECT_THAT(problem(run.parent_path()), HasSubstr("the run that is left is there"));
  write_file_atomically(other, "precious");
  EXPECT_THAT(problem(other), HasSubstr("exists, but is not a run"));
  EXPECT_EQ(read_file(other), "precious");
  fs::remove(other);
  fork_run(run, 4, experiment({}), other, ExistingFork::replace);
  const FileLock training(other / kLockFile);
  EXPECT_THAT(problem(other), HasSubstr(fmt::format("process {} is training this run", getpid())));
  EXPECT_TRUE(is_run(run));
}

}  // namespace
}  // namespace zoo::testing
