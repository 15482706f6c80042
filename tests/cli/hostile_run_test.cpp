// Runs and comparisons of strangers: links, pipes and other things that are not files, in every place of the
// directory, for every command. Nothing outside changes, nothing hangs, and an error is one line.
//
// By default a part of all combinations is tried; with ZOO_EVERY_COMBINATION=1 all of them.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comparison/compare.h"
#include "comparison/planning/comparison_config.h"
#include "experiments/load_experiment.h"
#include "tasks/experiment.h"
#include "tests/cli/support.h"
#include "tests/support/program_copy.h"

namespace zoo::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kTimeLimit = 240s;  // the longest command takes a second on a quiet machine

/// What stands in the place of a file or of a directory.
enum class Thing {
  link_to_the_same,
  link_to_file,
  link_to_directory,
  dangling_link,
  link_to_device,
  hard_link,
  pipe,
  socket,
  directory
};
constexpr auto kThings = std::to_array<std::pair<Thing, const char*>>({
    {Thing::link_to_the_same, "link_to_the_same"},  // to a copy, elsewhere, of what was in this place
    {Thing::link_to_file, "link_to_file"},
    {Thing::link_to_directory, "link_to_directory"},
    {Thing::dangling_link, "dangling_link"},
    {Thing::link_to_device, "link_to_device"},
    {Thing::hard_link, "hard_link"},
    {Thing::pipe, "pipe"},
    {Thing::socket, "socket"},
    {Thing::directory, "directory"},
});

void bind_socket(const fs::path& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const auto before = fs::current_path();  // the name of a socket is short
  fs::current_path(path.parent_path());
  path.filename().string().copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  fs::current_path(before);
  ::close(fd);
}

/// Everything below a directory with kind, rights, time of the last change, and content.
std::map<std::string, std::string> state_of(const fs::path& directory) {
  std::map<std::string, std::string> state;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    struct stat status{};
    ::lstat(entry.path().c_str(), &status);
    state[entry.path().lexically_relative(directory).string()] =
        fmt::format("{:o} {}.{} {}", status.st_mode, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                    S_ISREG(status.st_mode)   ? read_file(entry.path())
                    : S_ISLNK(status.st_mode) ? fs::read_symlink(entry.path()).string()
                                              : "");
  }
  return state;
}

/// `body` in a copy of this process, because starting the program takes longer than most commands. This
/// process must not have used threads.
Outcome in_a_copy(const fs::path& dir, const std::function<int()>& body) {
  const auto out = dir / "stdout", err = dir / "stderr";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto redirect = [](int stream, const fs::path& path, int flags) {
      ::dup2(::open(path.c_str(), flags | O_CLOEXEC, 0600), stream);
    };
    redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
    redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC);
    redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT | O_TRUNC);
    ::setenv("ZOO_DATA", dir.c_str(), 1);
    ::setenv("ZOO_CACHE", (dir / "cache").c_str(), 1);
    fs::current_path(dir);
    const int code = body();
    std::cout.flush();
    ::_exit(code);
  }
  const auto end = std::chrono::steady_clock::now() + kTimeLimit;
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(1ms);
  }
  return {.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
          .out = read_file(out),
          .err = read_file(err)};
}

/// The main() of the program zoo.
int run_command(std::string_view arguments) { return run_program(*plain_words(arguments)); }

/// `zoo compare --out compared`, with short measurements. Trainings are started with the program that is
/// tested, not with this one.
int run_comparison(Comparison comparison, ExistingRun existing) {
  const char* const program = std::getenv("ZOO_PROGRAM");
  if (program == nullptr) throw UsageError("set ZOO_PROGRAM to the program");
  comparison.settings.seeds = 1;
  comparison.settings.speed_seconds = 0.001;
  comparison.settings.scaling = false;
  compare(comparison, {.dir = "compared",
                       .existing = existing,
                       .program = program,
                       .device = "cpu",
                       .command = "zoo compare"});
  return 0;
}

/// The exit code of `body`, whose error is printed as main() does.
int reporting(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::cerr << "zoo: " << error.what() << '\n';
    return error.exit_code();
  }
}

/// Exit code 0, 1 or 2, and one line that says why not 0.
void expect_orderly_end(const Outcome& outcome) {
  EXPECT_THAT(outcome.code, ::testing::AnyOf(0, 1, 2)) << outcome.err;
  if (outcome.code == 0) return;
  const size_t at = outcome.err.find("zoo: ");
  ASSERT_NE(at, outcome.err.npos) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n', at), outcome.err.size() - 1) << outcome.err;
  EXPECT_EQ(outcome.err.find("zoo: ", at + 1), outcome.err.npos) << outcome.err;
}

bool every_combination() { return std::getenv("ZOO_EVERY_COMBINATION") != nullptr; }

/// A directory with a text, a configuration, and two of what `zoo train` and `zoo compare` make; and beside
/// it what belongs to somebody else.
class World {
 public:
  World() {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "to be or not to be that is the question\n";
    dir_.write("world/text.txt", text);
    dir_.write("world/tiny.yaml", R"(name: tiny
task: language_modeling
data: {train: text.txt, sequence_length: 16, tokenizer: {type: char}}
model: {architecture: decoder, d_model: 16, n_layers: 1, n_heads: 2, d_ff: 32, max_positions: 32}
training: {steps: 4, batch_size: 2, schedule: {type: constant}, evaluate_every: 2, checkpoint_every: 2, threads: 1}
generation: {max_new_tokens: 4}
)");
    dir_.write("outside/file", "precious\n");
    dir_.write("outside/directory/step-2/model.safetensors", "precious\n");
    dir_.write("outside/directory/step-99/state.json", "precious\n");
    for (const char* name :
         {"config.yaml", "metrics.jsonl", "results.json", "seed-1.yaml", ".removed-step-2"})
      dir_.write(std::string("outside/directory/") + name, "precious\n");
    fs::create_directory(dir_ / "outside/empty");
  }

  fs::path path(std::string_view name) const { return dir_ / name; }
  fs::path inside() const { return dir_ / "world"; }

  /// Calls `act` while `thing` stands at world/`name` in place of what is there, and checks the outside. Then
  /// everything in the world is as before.
  void with(const std::string& name, Thing thing,
            const std::function<void(const std::function<void()>&)>& act) {
    const auto place = inside() / name, kept = dir_ / "outside/same";
    fs::copy(inside(), dir_ / "before", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    if (fs::exists(fs::symlink_status(place)) && !fs::is_symlink(place)) {
      fs::copy(place, kept, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    } else {
      dir_.write("outside/same", "precious\n");
    }
    const auto outside = state_of(dir_ / "outside");
    act([&] { put(place, thing); });
    const auto after = state_of(dir_ / "outside");
    EXPECT_THAT(differences(outside, after), ::testing::IsEmpty());
    EXPECT_THAT(differences(after, outside), ::testing::IsEmpty());
    for (const char* bystander : {"text.txt", "tiny.yaml"})
      EXPECT_EQ(read_file(inside() / bystander), read_file(dir_ / "before" / bystander));
    fs::remove_all(kept);
    fs::remove_all(inside());
    fs::rename(dir_ / "before", inside());
  }

 private:
  void put(const fs::path& place, Thing thing) const {
    const auto outside = dir_ / "outside";
    fs::remove_all(place);
    fs::create_directories(place.parent_path());
    switch (thing) {
      case Thing::link_to_the_same:
        return fs::create_symlink(outside / "same", place);
      case Thing::link_to_file:
        return fs::create_symlink(outside / "file", place);
      case Thing::link_to_directory:
        return fs::create_symlink(outside / "directory", place);
      case Thing::dangling_link:
        return fs::create_symlink(outside / "empty/new", place);
      case Thing::link_to_device:
        return fs::create_symlink("/dev/zero", place);
      case Thing::hard_link:
        return fs::create_hard_link(outside / (fs::is_regular_file(outside / "same") ? "same" : "file"),
                                    place);
      case Thing::pipe:
        EXPECT_EQ(::mkfifo(place.c_str(), 0600), 0);
        return;
      case Thing::socket:
        return bind_socket(place);
      case Thing::directory:
        fs::create_directories(place / "sub");
        return;
    }
  }

  TempDir dir_;
};

/// All files and directories of a run, with names for those whose names change.
std::vector<std::string> entries_below(const fs::path& run) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(run))
    names.push_back(entry.path().lexically_relative(run).string());
  std::ranges::sort(names);
  return names;
}

// ---- a run

constexpr std::string_view kCompare = "compare run other --out compared --resume";
constexpr auto kCommands = std::to_array<std::string_view>({
    "train tiny.yaml --device cpu --out run --resume --set training.steps=6",
    "train tiny.yaml --device cpu --out run --overwrite",
    "train tiny.yaml --device cpu --out run",
    "train tiny.yaml --device cpu --out new --set init_from=run --set training.steps=2",
    "generate run --device cpu --prompt to",
    "evaluate run --device cpu",
    "embed run --device cpu --text to",
    "predict run --device cpu --text to",
    "inspect run",
    "attention run --device cpu --text to",
    "average run --device cpu",
    "bench run --device cpu --seconds 0",
    "tokenizer encode run --text to",
    "tokenizer decode run --ids 1",
    "config run",
    kCompare,
});

int compare_runs(ExistingRun existing) {
  return reporting([&] { return run_comparison(comparison_of({"run", "other"}, {}), existing); });
}

int run_any(std::string_view command) {
  return command == kCompare ? compare_runs(ExistingRun::resume) : run_command(command);
}

class HostileRun : public ::testing::TestWithParam<std::pair<Thing, const char*>> {
 protected:
  void SetUp() override {
    for (const char* command :
         {"train tiny.yaml --device cpu --out run", "train tiny.yaml --device cpu --out other",
          "attention run --device cpu --text to"}) {
      const auto outcome = in_a_copy(world_.inside(), [&] { return run_command(command); });
      ASSERT_EQ(outcome.code, 0) << outcome.err;
    }
    const auto compared = in_a_copy(world_.inside(), [] { return compare_runs(ExistingRun::refuse); });
    ASSERT_EQ(compared.code, 0) << compared.err;
  }

  /// What a run has, and what the program makes in a run or beside it.
  std::vector<std::string> places() const {
    std::vector<std::string> places;
    for (const auto& name : entries_below(world_.path("world/run"))) places.push_back("run/" + name);
    for (const char* name : {".lock", ".no-checkpoint-yet", "failed.txt", "labels.json", "tokenizer.model",
                             "evaluation-8.json", "model.safetensors.new", "checkpoints/step-6",
                             "checkpoints/.removed-step-2", "checkpoints/step-4/average.safetensors"})
      places.push_back(std::string("run/") + name);
    places.insert(places.end(),
                  {"run.before-overwrite", "run-average", "compared/results.json", "compared/report.html",
                   "compared/measured", "compared/measured/speeds.json"});
    return places;
  }

  void try_all(const std::string& place, size_t number) {
    for (size_t i = 0; i < kCommands.size(); ++i) {
      // Two commands write into a run and are tried everywhere; of the others a third, another one in each
      // place.
      if (i >= 2 && (i + number) % 3 != 0 && !every_combination()) continue;
      SCOPED_TRACE(fmt::format("zoo {}, {} at {}", kCommands[i], GetParam().second, place));
      world_.with(place, GetParam().first, [&](const std::function<void()>& put) {
        put();
        expect_orderly_end(in_a_copy(world_.inside(), [&] { return run_any(kCommands[i]); }));
      });
      ++tried_;
    }
  }

  World world_;
  int tried_ = 0;
};

TEST_P(HostileRun, ChangesNothingElsewhere) {
  size_t number = static_cast<size_t>(GetParam().first);
  for (const auto& place : places()) try_all(place, number++);
  RecordProperty("combinations", tried_);
}

// The names of temporaries contain the id of the process, so a stranger can put many of them there.
TEST_P(HostileRun, WithTemporariesChangesNothingElsewhere) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  for (const auto& command : kCommands) {
    SCOPED_TRACE(fmt::format("zoo {}, {} as temporaries", command, GetParam().second));
    world_.with("run/unused", GetParam().first, [&](const std::function<void()>& put) {
      const auto outcome = in_a_copy(world_.inside(), [&] {
        put();
        for (const char* place : {"run/.config.yaml", "run/.tokenizer.json", "run/.metrics.jsonl",
                                  "run/.model.safetensors", "run/.attention.html", "run/.no-checkpoint-yet",
                                  "run/.evaluation.json", "run/checkpoints/.last", "run/checkpoints/.step-6",
                                  ".run-average", "compared/.results.json", "new/.config.yaml"}) {
          for (int i = 0; i < 12; ++i) {
            const auto name = world_.inside() / fmt::format("{}.tmp-{}~{}-{}", place, host, ::getpid(), i);
            fs::create_directories(name.parent_path());
            std::error_code ignored;
            if (GetParam().first == Thing::directory)
              fs::create_directory(name, ignored);
            else
              fs::create_hard_link(world_.inside() / "run/unused", name, ignored);
          }
        }
        return run_any(command);
      });
      expect_orderly_end(outcome);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Of, HostileRun, ::testing::ValuesIn(kThings),
                         [](const auto& thing) { return std::string(thing.param.second); });

// ---- a comparison

/// A comparison that has trained one run.
class HostileComparison : public ::testing::TestWithParam<std::pair<Thing, const char*>> {
 protected:
  void SetUp() override { ASSERT_EQ(compare(ExistingRun::refuse).code, 0); }

  Outcome compare(ExistingRun existing) const {
    return in_a_copy(world_.inside(), [&] {
      return reporting([&] {
        Comparison comparison;
        comparison.variants.push_back({.name = "a", .experiment = load_experiment("tiny.yaml")});
        return run_comparison(std::move(comparison), existing);
      });
    });
  }

  World world_;
};

TEST_P(HostileComparison, ChangesNothingElsewhere) {
  const auto [thing, name] = GetParam();
  std::vector<std::string> places = {
      "results.json", "report.html",          "report.md",          "runs",
      "runs/a",       "runs/a/seed-1",        "runs/a/seed-1.yaml", "runs/a/seed-1.log",
      "measured",     "measured/speeds.json", "measured/jobs.json", "measured/a-scaling.json"};
  if (every_combination()) {
    for (const auto& entry : entries_below(world_.path("world/compared/runs/a/seed-1")))
      places.push_back("runs/a/seed-1/" + entry);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    for (const auto existing : {ExistingRun::resume, ExistingRun::replace}) {
      // A training is a process, which takes a second to start.
      const bool sampled = (i + static_cast<size_t>(thing)) % 3 == 0 || existing == ExistingRun::resume;
      if (!sampled && !every_combination()) continue;
      SCOPED_TRACE(fmt::format("{}, {} at {}", static_cast<int>(existing), name, places[i]));
      world_.with("compared/" + places[i], thing, [&](const std::function<void()>& put) {
        put();
        expect_orderly_end(compare(existing));
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, HostileComparison, ::testing::ValuesIn(kThings),
                         [](const auto& thing) { return std::string(thing.param.second); });

}  // namespace
}  // namespace zoo::testing
