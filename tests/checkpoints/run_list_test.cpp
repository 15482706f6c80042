#include "checkpoints/run_list.h"

#include <chrono>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/file_lock.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

namespace fs = std::filesystem;

class RunList : public ::testing::Test {
 protected:
  /// Trains, or stops after some steps; the run seems to have been written `minutes` ago.
  void make(const std::string& name, int minutes, std::vector<std::string> overrides,
            std::optional<int64_t> stop_at = std::nullopt) {
    overrides.push_back("name=" + fs::path(name).filename().string());
    bool stops = false;
    train(world.experiment("language_modeling", overrides),
          {.run_dir = dir / name,
           .on_progress = [&](const TrainProgress& progress) { stops = progress.step == stop_at; },
           .should_stop = [&] { return stops; }});
    const auto time = fs::file_time_type::clock::now() - std::chrono::minutes(minutes);
    for (const auto& entry : fs::directory_iterator(dir / name))
      if (entry.is_regular_file()) fs::last_write_time(entry.path(), time);
  }
  RunSummary only(const std::string& name) const {
    for (auto& run : list_runs(dir))
      if (run.dir == name) return run;
    throw std::runtime_error(name);
  }

  TinyWorld world;
  fs::path dir = world.path("runs");
};

TEST_F(RunList, SaysWhatRunsAreAndWhatDiffers) {
  make("old", 30, {"training.steps=4", "training.optimizer.lr=1e-3"});
  make("study/new", 10, {"training.steps=4", "training.optimizer.lr=2e-3"});
  make("cut", 20, {"training.steps=8", "training.optimizer.lr=1e-3", "training.checkpoint_every=2"}, 2);
  fs::create_directory_symlink(dir, dir / "circle");
  const auto runs = list_runs(dir);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].dir, "study/new");
  EXPECT_EQ(runs[1].dir, "cut");
  EXPECT_EQ(runs[2].dir, "old");
  EXPECT_EQ(runs[0].task, "language_modeling");
  EXPECT_EQ(runs[0].architecture, "decoder");
  EXPECT_EQ(runs[0].activity, RunActivity::finished);
  EXPECT_EQ(runs[0].step, 4);
  EXPECT_EQ(runs[0].metric, "loss");
  EXPECT_GT(*runs[0].best, 0);
  EXPECT_GT(*runs[0].parameters, 100);
  EXPECT_GT(runs[0].seconds, 0);
  EXPECT_EQ(runs[1].activity, RunActivity::stopped);
  EXPECT_EQ(runs[1].step, 3) << "the step that was under way is finished";
  EXPECT_EQ(runs[1].steps, 8);
  EXPECT_THAT(runs[1].differs,
              UnorderedElementsAre(Pair("training.steps", "8"), Pair("training.checkpoint_every", "2"),
                                   Pair("training.optimizer.lr", "0.001")));
  EXPECT_EQ(list_runs(dir / "old").size(), 1U);
}

TEST_F(RunList, SaysWhichRunsAreTrainedNowHaveFailedOrAreDamaged) {
  make("one", 1, {"training.steps=2"});
  EXPECT_THAT(only("one").differs, IsEmpty());
  {
    const FileLock lock(dir / "one/.lock");
    EXPECT_EQ(only("one").activity, RunActivity::running);
    std::ofstream(dir / "one/metrics.jsonl") << R"({"step":1,"seconds":1})"
                                             << "\n"
                                             << R"({"step":7,"seconds":2e6})"
                                             << "\n"
                                             << R"({"step":9,)";
    EXPECT_EQ(only("one").step, 7) << "the last row is being written";
    EXPECT_EQ(only("one").seconds, 2e6);
  }
  std::ofstream(dir / "one/failed.txt") << "the loss is not a number\nmore\n";
  EXPECT_EQ(only("one").activity, RunActivity::failed);
  EXPECT_EQ(only("one").problem, "the loss is not a number");
  fs::remove(dir / "one/failed.txt");
  for (const char* const part : {"checkpoints", "metrics.jsonl"}) fs::remove_all(dir / "one" / part);
  EXPECT_EQ(only("one").activity, RunActivity::made);
  EXPECT_TRUE(only("one").parameters);
  std::ofstream(dir / "one/config.yaml") << "name: [";
  EXPECT_EQ(only("one").activity, RunActivity::damaged);
  EXPECT_THAT(only("one").problem, HasSubstr("config.yaml"));
  EXPECT_THROW(list_runs(dir / "nowhere"), UsageError);
}

}  // namespace
}  // namespace zoo::testing
