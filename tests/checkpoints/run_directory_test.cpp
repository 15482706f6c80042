// Runs that are replaced, and directories that hold other files.

#include "checkpoints/run_directory.h"

#include <signal.h>

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoints/run.h"
#include "tests/io/small_disk.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

/// The files below a directory, with their contents.
std::map<std::string, std::string> files_of(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), directory).string()] = read_file(entry.path());
  }
  return files;
}

class Overwriting : public ::testing::Test {
 protected:
  Overwriting() {
    train(world.experiment("language_modeling", {"training.steps=4"}), {.run_dir = run});
    earlier = files_of(run);
  }
  /// Trains 20 steps, with a checkpoint every 4 of them.
  TrainResult replace(const std::vector<std::string>& overrides = {},
                      std::function<void(const TrainProgress&)> on_progress = nullptr,
                      ExistingRun existing = ExistingRun::replace) const {
    return train(world.experiment("language_modeling", overrides),
                 {.run_dir = run, .existing = existing, .on_progress = std::move(on_progress)});
  }
  /// Does so in a process that is killed before its first checkpoint.
  void replace_and_die(ExistingRun existing = ExistingRun::replace) const {
    const auto die = [](const TrainProgress& progress) {
      if (progress.step == 2) ::raise(SIGKILL);
    };
    ASSERT_EQ(Child([&] { return replace({"model.d_ff=20"}, die, existing), 0; }).wait(), -SIGKILL);
  }

  TinyWorld world;
  fs::path run = world.path("run"), aside = world.path("run.before-overwrite");
  std::map<std::string, std::string> earlier;
};

TEST_F(Overwriting, KeepsTheEarlierRunUntilThereIsACheckpoint) {
  bool was_there = false;
  replace({}, [&](const TrainProgress& progress) {
    if (progress.step != 3) return;
    was_there = true;
    EXPECT_EQ(files_of(aside), earlier);
    EXPECT_FALSE(fs::exists(run / "checkpoints"));
  });
  EXPECT_TRUE(was_there);
  EXPECT_FALSE(fs::exists(aside));
  EXPECT_EQ(fs::read_symlink(run / "checkpoints/last"), "step-20");
}

TEST_F(Overwriting, PutsTheEarlierRunBackIfTrainingFails) {
  EXPECT_THROW(replace({"training.optimizer.type=sgd", "training.optimizer.lr=1e30",
                        "training.clip_grad_norm=0", "training.schedule={type: constant, warmup_steps: 0}"}),
               TrainingError);
  EXPECT_EQ(files_of(run), earlier);
  EXPECT_FALSE(fs::exists(aside));
}

TEST_F(Overwriting, PutsTheEarlierRunBackIfTheDiskIsFull) {
  for (const int64_t step : {0, 4}) {  // when the run begins, and at its first checkpoint
    Child child([&] {
      std::unique_ptr<SmallDisk> disk;
      if (step == 0) disk = std::make_unique<SmallDisk>(100);
      replace({}, [&](const TrainProgress& progress) {
        if (progress.step == step) disk = std::make_unique<SmallDisk>(8000);
      });
      return 0;
    });
    EXPECT_EQ(child.wait(), 1);
    EXPECT_EQ(files_of(run), earlier);
    EXPECT_FALSE(fs::exists(aside));
  }
}

TEST_F(Overwriting, SaysWhereTheEarlierRunIsIfItWasKilled) {
  replace_and_die();
  EXPECT_EQ(files_of(aside), earlier);
  EXPECT_NO_THROW(Run::open(aside));
  EXPECT_THAT(message_of<UsageError>([&] { replace({}, nullptr, ExistingRun::refuse); }),
              AllOf(HasSubstr("run: this run died before its first checkpoint"),
                    HasSubstr("is kept in " + fs::canonical(aside).string())));
  EXPECT_EQ(files_of(aside), earlier);
}

TEST_F(Overwriting, CanGoOnAfterItWasKilled) {
  replace_and_die();
  replace_and_die(ExistingRun::resume);
  EXPECT_EQ(files_of(aside), earlier);
  replace({"model.d_ff=20"}, nullptr, ExistingRun::resume);
  EXPECT_EQ(Run::open(run).experiment().model.d_ff, 20);
  EXPECT_FALSE(fs::exists(aside));
}

TEST_F(Overwriting, CanBeginAnewAfterItWasKilled) {
  replace_and_die();
  replace_and_die();
  EXPECT_EQ(files_of(aside), earlier) << "not what died";
  replace({"model.d_ff=24"});
  EXPECT_EQ(Run::open(run).experiment().model.d_ff, 24);
  EXPECT_FALSE(fs::exists(aside));
}

TEST_F(Overwriting, CanFailAfterItWasKilled) {
  replace_and_die();
  EXPECT_THROW(replace({}, [](const TrainProgress&) { throw TrainingError("enough"); }), TrainingError);
  EXPECT_EQ(files_of(run), earlier);
  EXPECT_FALSE(fs::exists(aside));
}

// Killed when the earlier run was set aside and nothing was in its place yet.
TEST_F(Overwriting, SaysWhereTheEarlierRunIsIfNothingReplacedIt) {
  fs::rename(run, aside);
  for (const bool empty : {false, true}) {
    if (empty) fs::create_directory(run);
    for (const auto existing : {ExistingRun::refuse, ExistingRun::resume}) {
      EXPECT_THAT(message_of<UsageError>([&] { replace({}, nullptr, existing); }),
                  AllOf(HasSubstr("the run that was here is kept in " + fs::canonical(aside).string()),
                        HasSubstr("ExistingRun::replace")));
    }
  }
  EXPECT_EQ(files_of(aside), earlier);
  replace();
  EXPECT_EQ(fs::read_symlink(run / "checkpoints/last"), "step-20");
  EXPECT_FALSE(fs::exists(aside));
}

// Killed between the first checkpoint and the removal of the earlier run.
TEST_F(Overwriting, RemovesTheEarlierRunLater) {
  for (const auto existing : {ExistingRun::resume, ExistingRun::replace}) {
    fs::copy(run, aside, fs::copy_options::recursive);
    EXPECT_THAT(message_of<UsageError>([&] { replace({}, nullptr, ExistingRun::refuse); }),
                HasSubstr("this run exists"));
    replace({}, nullptr, existing);
    EXPECT_FALSE(fs::exists(aside));
    EXPECT_EQ(Run::open(run).experiment().training.steps, 20);
  }
}

TEST_F(Overwriting, LeavesLinksInPlace) {
  fs::rename(run, world.path("elsewhere"));
  fs::create_directory_symlink(world.path("elsewhere"), run);
  EXPECT_THROW(replace({}, [](const TrainProgress&) { throw TrainingError("enough"); }), TrainingError);
  EXPECT_EQ(files_of(run), earlier);
  replace();
  EXPECT_TRUE(fs::is_symlink(run));
  EXPECT_EQ(fs::read_symlink(world.path("elsewhere/checkpoints/last")), "step-20");
  EXPECT_FALSE(fs::exists(world.path("elsewhere.before-overwrite")));
}

/// A run of 4 steps, whose checkpoints somebody removes.
class WithoutCheckpoints : public ::testing::Test {
 protected:
  WithoutCheckpoints() { train(experiment, {.run_dir = run}); }
  std::string problem() const {
    return message_of<UsageError>(
        [&] { train(experiment, {.run_dir = run, .existing = ExistingRun::resume}); });
  }

  TinyWorld world;
  fs::path run = world.path("run");
  Experiment experiment =
      world.experiment("language_modeling", {"training.steps=4", "training.evaluate_every=2"});
};

TEST_F(WithoutCheckpoints, ARunIsNotResumed) {
  for (const bool directory : {false, true}) {
    if (directory) {
      fs::remove_all(run / "checkpoints");
    } else {
      for (const auto& entry : fs::directory_iterator(run / "checkpoints")) fs::remove_all(entry);
    }
    const auto before = files_of(run);
    EXPECT_THAT(problem(), AllOf(HasSubstr("run: its checkpoints are gone"),
                                 HasSubstr("init_from: " + run.string()), HasSubstr("ExistingRun::replace")));
    EXPECT_EQ(files_of(run), before);
  }
  train(experiment, {.run_dir = run, .existing = ExistingRun::replace});
  EXPECT_TRUE(fs::exists(run / "checkpoints/step-4"));
}

TEST_F(WithoutCheckpoints, ARunWithoutWeightsStartsOver) {
  fs::remove_all(run / "checkpoints");
  fs::remove(run / "model.safetensors");
  train(experiment, {.run_dir = run, .existing = ExistingRun::resume});
  EXPECT_TRUE(fs::exists(run / "checkpoints/step-4"));
}

// It has weights from an evaluation, but nothing that could be lost: it goes on as if it had not been killed.
TEST_F(WithoutCheckpoints, ARunThatWasKilledBeforeItsFirstOneStartsOver) {
  const auto killed = world.path("killed");
  const TrainOptions resuming{.run_dir = killed, .existing = ExistingRun::resume};
  for (int i = 0; i < 2; ++i) {
    const auto die = [](const TrainProgress& progress) {
      if (progress.step == 3) ::raise(SIGKILL);
    };
    auto options = resuming;
    options.on_progress = die;
    ASSERT_EQ(Child([&] { return train(experiment, options), 0; }).wait(), -SIGKILL);
    EXPECT_TRUE(fs::exists(killed / "model.safetensors"));
    EXPECT_FALSE(fs::exists(killed / "checkpoints"));
  }
  train(experiment, resuming);
  EXPECT_EQ(read_file(killed / "model.safetensors"), read_file(run / "model.safetensors"));
  for (const auto& [name, content] : files_of(killed)) EXPECT_FALSE(name.starts_with('.')) << name;
}

// However early the disk is full, the run can be trained afterwards.
TEST(RunDirectory, CanBeUsedAfterTheDiskWasFull) {
  const TinyWorld world;
  for (const char* task : {"language_modeling", "text_classification"}) {
    const auto experiment = world.experiment(task, {"training.steps=1"});
    size_t n_resumed = 0, n_fresh = 0;
    for (size_t bytes = 0; bytes < 8000; bytes += bytes < 1000 ? 50 : 500) {
      SCOPED_TRACE(fmt::format("{}, {} bytes", task, bytes));
      const auto run = world.path(fmt::format("{}-{}", task, bytes));
      Child child([&] {
        const SmallDisk full(bytes);
        train(experiment, {.run_dir = run});
        return 0;
      });
      ASSERT_EQ(child.wait(), 1);
      const bool resumes = fs::exists(run / "config.yaml");
      ++(resumes ? n_resumed : n_fresh);
      EXPECT_EQ(resumes, fs::exists(run)) << "nothing is left of what is no run";
      train(experiment, {.run_dir = run, .existing = resumes ? ExistingRun::resume : ExistingRun::refuse});
    }
    EXPECT_GT(n_resumed, 3u);
    EXPECT_GT(n_fresh, 3u);
  }
}

// A run of a stranger: the directory of a victim has the same form.
TEST(RunDirectory, FollowsNoLinks) {
  const TinyWorld world;
  const auto run = world.path("run"), victim = world.path("victim");
  const auto experiment = world.experiment("language_modeling", {"training.steps=4"});
  train(experiment, {.run_dir = run});
  fs::create_directory(victim);
  for (const std::string name : {"checkpoints", "samples.txt", "metrics.jsonl", ".lock"}) {
    if (fs::exists(run / name)) fs::copy(run / name, victim / name, fs::copy_options::recursive);
    if (name == ".lock") world.dir().write("victim/.lock", "precious");
    std::error_code ignored;  // there is no lock
    fs::rename(run / name, run / "kept", ignored);
    fs::create_symlink(victim / name, run / name);
    const auto before = files_of(victim);
    const auto longer = world.experiment("language_modeling", {"training.steps=8"});
    EXPECT_THROW(train(longer, {.run_dir = run, .existing = ExistingRun::resume}), Error) << name;
    EXPECT_EQ(files_of(victim), before) << name;
    fs::remove(run / name);
    fs::rename(run / "kept", run / name, ignored);
  }
}

TEST(RunDirectory, IsOfOneProcess) {
  const TinyWorld world;
  const auto experiment = world.experiment("language_modeling");
  const auto run = world.path("run");
  const auto expected =
      AllOf(HasSubstr(run.string()), HasSubstr(fmt::format("process {} is training this run", ::getpid())));
  bool tried = false;
  const auto intrude = [&](const TrainProgress& progress) {
    if (progress.step != 5) return;
    tried = true;
    for (const auto existing : {ExistingRun::refuse, ExistingRun::resume, ExistingRun::replace}) {
      EXPECT_THAT(message_of<UsageError>([&] { train(experiment, {.run_dir = run, .existing = existing}); }),
                  expected);
    }
  };
  train(experiment, {.run_dir = run, .on_progress = intrude});
  EXPECT_TRUE(tried);
  tried = false;
  train(experiment, {.run_dir = run, .existing = ExistingRun::replace, .on_progress = intrude});
  EXPECT_TRUE(tried);
  EXPECT_FALSE(fs::exists(run / ".lock"));

  // The directory is locked even while the first process reads its data, and when its first files are there.
  const RunDirectory first(experiment, world.path("new"), ExistingRun::refuse);
  for (const char* file : {"", "tokenizer.json", "hub/tokenizer_config.json", "config.yaml"}) {
    if (*file) world.dir().write(std::string("new/") + file, "half");
    for (const auto existing : {ExistingRun::refuse, ExistingRun::resume, ExistingRun::replace})
      EXPECT_THAT(message_of<UsageError>(
                      [&] { train(experiment, {.run_dir = world.path("new"), .existing = existing}); }),
                  HasSubstr("is training this run"))
          << file;
  }
}

TEST(RunDirectory, LeavesNothingIfTrainingNeverBegins) {
  const TinyWorld world;
  auto experiment = world.experiment("language_modeling");
  experiment.data.train = {"missing.txt"};
  EXPECT_THROW(train(experiment, {.run_dir = world.path("run")}), DataError);
  EXPECT_FALSE(fs::exists(world.path("run")));
}

TEST(RunDirectory, OfARunThatDiedAtOnceIsUsedAgain) {
  const TinyWorld world;
  const auto experiment = world.experiment("language_modeling", {"training.steps=2"});
  for (const auto existing : {ExistingRun::refuse, ExistingRun::resume, ExistingRun::replace}) {
    const auto name = std::to_string(static_cast<int>(existing));
    for (const char* file :
         {"/.lock", "/tokenizer.model", "/labels.json", "/pixels.json", "/dense.safetensors",
          "/hub/tokenizer_config.json", "/hub/more/vocab.txt", "/.config.yaml.tmp-here-99-0"}) {
      world.dir().write(name + file, "half");
    }
    train(experiment, {.run_dir = world.path(name), .existing = existing});
    const auto files = files_of(world.path(name));
    EXPECT_TRUE(files.contains("tokenizer.json"));
    for (const auto& [file, content] : files) EXPECT_NE(content, "half") << file;
  }
}

TEST(RunDirectory, OfSomebodyElseIsNotUsed) {
  const TinyWorld world;
  const auto experiment = world.experiment("language_modeling", {"training.steps=2"});
  // A directory with a trained vocabulary, one with a lock among other files, and a file.
  world.dir().write("vocabulary/tokenizer.model", "mine");
  world.dir().write("notes/.lock", "");
  world.dir().write("notes/thesis.txt", "mine");
  world.dir().write("file", "mine");
  const auto before = files_of(world.dir().path());
  for (const char* name : {"vocabulary", "notes", "file"}) {
    for (const auto existing : {ExistingRun::refuse, ExistingRun::resume, ExistingRun::replace}) {
      EXPECT_THAT(message_of<UsageError>(
                      [&] { train(experiment, {.run_dir = world.path(name), .existing = existing}); }),
                  HasSubstr(std::string(name) + ": exists, but is not a run"));
    }
  }
  EXPECT_EQ(files_of(world.dir().path()), before);
}

}  // namespace
}  // namespace zoo::testing
