#include "checkpoints/run_directory.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "io/files.h"
#include "io/output_file.h"
#include "io/paths.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Whether a resumed run must have the same value of this key, because shapes, data order, random numbers or
/// the choice of the best weights depend on it.
bool is_fixed(std::string_view key, bool has_checkpoint) {
  constexpr auto fixed = std::to_array<std::string_view>(
      {"task", "init_from", "training.seed", "training.batch_size", "training.effective_batch_size",
       "training.batch_tokens", "training.optimizer.type", "training.optimizer.momentum",
       "training.ema_decay", "training.best_by", "training.objective", "training.freeze", "training.lora"});
  if (key == "data.test") return false;
  // A checkpoint has a hash of the content of these files, so they may have been moved.
  if (has_checkpoint && (key == "data.train" || key == "data.valid")) return false;
  return key.starts_with("data.") || key.starts_with("model.") || key.starts_with("training.lora.") ||
         std::find(fixed.begin(), fixed.end(), key) != fixed.end();
}

/// Whether the value of this key has only been written in another way: as a path that was pinned, and that
/// leads nowhere by now.
bool is_same_path(std::string_view key, const Experiment& started, const Experiment& wanted) {
  if (key == "data.tokenizer.path") return may_be(wanted.data.tokenizer.path, started.data.tokenizer.path);
  return key == "init_from" && wanted.init_from && started.init_from &&
         may_be(*wanted.init_from, *started.init_from);
}

/// Throws ConfigError for the first fixed key in which `wanted` differs from `started`.
void check_same(const fs::path& run_dir, const Experiment& started, const Experiment& wanted) {
  const bool has_checkpoint = newest_checkpoint(run_dir).has_value();
  const auto before = flatten(started), now = flatten(wanted);
  const auto value_in = [](const std::vector<ConfigValue>& values, const std::string& key) {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.key == key; });
    return found == values.end() ? std::string("null") : found->value;
  };
  auto keys = now;
  // Those of a group that only the old configuration has.
  for (const auto& [key, value] : before) {
    if (std::ranges::find(now, key, &ConfigValue::key) == now.end()) keys.push_back({key, "null"});
  }
  for (const auto& [key, value] : keys) {
    const auto old = value_in(before, key);
    if (is_fixed(key, has_checkpoint) && old != value && !is_same_path(key, started, wanted)) {
      throw ConfigError(
          fmt::format("{}: this run was started with {}={}, not {}; set it back, or train anew with "
                      "ExistingRun::replace or another TrainOptions::run_dir",
                      (run_dir / "config.yaml").string(), key, old, value));
    }
  }
}

/// Whether a beginning run may make an entry of this name before config.yaml.
bool is_of_beginning(const std::string& name) {
  return name == kLockFile || name == kNoCheckpointYet || is_vocabulary_name(name) || is_temporary(name);
}

/// Whether a directory is missing, is empty, or holds only the remains of a run that died at once.
bool is_free(const fs::path& path) {
  std::error_code error;
  if (!is_there(path)) return true;
  if (!fs::is_directory(path, error)) return false;
  bool locked = false, empty = true, strange = false;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    empty = false;
    locked = locked || name == kLockFile;
    strange = strange || !is_of_beginning(name);
  }
  return !error && (empty || (locked && !strange));
}

/// Removes everything except the lock. config.yaml is removed last: until then the directory counts as a run
/// that has died.
void clear(const fs::path& directory, std::error_code& error) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename();
    if (name != kLockFile && name != "config.yaml") entries.push_back(at->path());
  }
  entries.push_back(directory / "config.yaml");
  for (const auto& entry : entries) {
    if (error) return;
    fs::remove_all(entry, error);
  }
}

/// Whether an earlier run stands aside. Throws if something else is there, which must not take its place.
bool stands_aside(const fs::path& replaced) { return has_subdirectory(replaced); }

/// For a destructor: never throws.
bool has_checkpoint(const fs::path& run) {
  try {
    return newest_checkpoint(run).has_value();
  } catch (const Error&) {
    return false;  // a link has taken the place of a directory
  }
}

[[noreturn]] void fail_replacing(const fs::path& path, const std::error_code& error) {
  throw SystemError(fmt::format("cannot replace '{}': {}", path.string(), error.message()));
}

}  // namespace

void check_can_resume_as(const fs::path& run_dir, const Experiment& wanted) {
  check_same(run_dir, read_run_experiment(run_dir), wanted);
}

fs::path run_path(const Experiment& experiment, const fs::path& wanted) {
  return wanted.empty() ? fs::path("runs") / experiment.name : wanted;
}

RunDirectory::RunDirectory(const Experiment& experiment, const fs::path& path, ExistingRun existing)
    : experiment_(experiment),
      path_(path),
      replaced_(resolved(path_) += ".before-overwrite"),
      existing_(existing) {
  // Whatever another process has written so far, it is what there is to say.
  if (FileLock::is_held(path_ / kLockFile)) lock();
  resumes();  // throws before anything is made
  made_ = make_directory(path_);
  lock_ = lock();
  goes_on_ = resumes();  // again: another process may have changed the answer before the lock was held
}

RunDirectory::~RunDirectory() {
  std::error_code error;
  if (replaces_) {
    const bool is_complete = !begun_ && has_checkpoint(path_);
    is_complete ? committed() : put_back();
  } else if (begun_) {
    clear(path_, error);
  }
  if (made_) {
    lock_.reset();
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
}

/// Whether the replacement of an earlier run was killed before its first checkpoint.
bool RunDirectory::successor_died() const { return stands_aside(replaced_) && !newest_checkpoint(path_); }

/// Throws if resuming the run would start it over and replace weights that it has.
void RunDirectory::check_can_go_on() const {
  if (!is_there(path_ / "model.safetensors") && !is_there(path_ / "adapter.safetensors")) return;
  if (!is_there(path_ / "metrics.jsonl")) {
    throw UsageError(fmt::format(
        "{}: this run has weights, but no training to resume, such as an average; start another run from "
        "it with init_from: {}",
        path_.string(), path_.string()));
  }
  if (newest_checkpoint(path_) || is_there(path_ / kNoCheckpointYet)) return;
  throw UsageError(
      fmt::format("{}: its checkpoints are gone, so it could only start over, and that would replace its "
                  "model.safetensors; start another run from these weights with init_from: {}, or train anew "
                  "with ExistingRun::replace",
                  path_.string(), path_.string()));
}

/// Whether there is a run to go on with. Throws if this directory must not be used.
bool RunDirectory::resumes() const {
  if (is_run(path_)) {
    if (existing_ == ExistingRun::refuse) {
      throw UsageError(
          successor_died()
              ? fmt::format(
                    "{}: this run died before its first checkpoint, and the run that it was to "
                    "replace is kept in {}; ExistingRun::resume or ExistingRun::replace starts the new run "
                    "again",
                    path_.string(), replaced_.string())
              : fmt::format("{}: this run exists; ExistingRun::resume goes on with it, ExistingRun::replace "
                            "replaces it",
                            path_.string()));
    }
    if (existing_ == ExistingRun::replace) return false;
    check_can_resume_as(path_, experiment_);
    check_can_go_on();
    return true;
  }
  if (!is_free(path_)) {
    throw UsageError(fmt::format(
        "{}: exists, but is not a run; name another directory with TrainOptions::run_dir", path_.string()));
  }
  if (existing_ != ExistingRun::replace && stands_aside(replaced_)) {
    throw UsageError(
        fmt::format("{}: the run that was here is kept in {}, because its replacement died at once; rename "
                    "that directory to restore the run, or train anew with ExistingRun::replace",
                    path_.string(), replaced_.string()));
  }
  return false;
}

std::unique_ptr<FileLock> RunDirectory::lock() const {
  auto lock = std::make_unique<FileLock>(path_ / kLockFile);
  if (lock->held()) return lock;
  const auto holder = lock->holder();
  throw UsageError(
      fmt::format("{}: {} is training this run; wait for its end or name another directory with "
                  "TrainOptions::run_dir",
                  path_.string(), holder ? fmt::format("process {}", *holder) : "another process"));
}

void RunDirectory::begin(const Vocabulary& vocabulary, int64_t steps, const std::function<void()>& fill) {
  experiment_.training.steps = steps;
  experiment_.training.epochs.reset();
  if (!goes_on_) make_room();
  replaces_ = stands_aside(replaced_);
  begun_ = !goes_on_;
  if (!goes_on_) {
    write_run_vocabulary(path_, vocabulary);
    fill();
  }
  if (!newest_checkpoint(path_)) {
    write_file_atomically(path_ / kNoCheckpointYet,
                          "This run has no checkpoint yet: if it is resumed, it starts over.\n");
  }
  // The configuration makes the directory a run, so it is written last.
  write_file_atomically(path_ / "config.yaml", dump_config(experiment_));
  begun_ = made_ = false;
}

/// Sets a run aside, or empties the directory. A run that was to replace another and died before its first
/// checkpoint is not kept.
void RunDirectory::make_room() {
  std::error_code error;
  if (!is_run(path_) || successor_died()) {
    clear(path_, error);
    if (error) fail_replacing(path_, error);
    return;
  }
  const fs::path full = resolved(path_);  // a link stays when its directory is renamed
  fs::remove_all(replaced_, error);
  if (!error) fs::rename(full, replaced_, error);
  if (error) fail_replacing(path_, error);
  if (!fs::create_directory(full, error)) {
    std::error_code ignored;
    fs::rename(replaced_, full, ignored);
    fail_replacing(path_, error);
  }
  lock_ = lock();  // the old lock file has moved with the run
  fs::remove(replaced_ / kLockFile, error);
}

void RunDirectory::put_back() {
  replaces_ = made_ = false;
  const fs::path full = resolved(path_);
  std::error_code error;
  clear(path_, error);
  lock_.reset();
  if (!error) fs::remove(full, error);
  if (!error) fs::rename(replaced_, full, error);
  // If this fails, the next process says where the earlier run is.
}

void RunDirectory::committed() {
  std::error_code ignored;  // a later process can remove the rest
  fs::remove(path_ / kNoCheckpointYet, ignored);
  if (!replaces_) return;
  replaces_ = false;
  fs::remove_all(replaced_, ignored);
}

std::optional<fs::path> RunDirectory::checkpoint() const {
  return goes_on_ ? newest_checkpoint(path_) : std::nullopt;
}

void RunDirectory::truncate_samples(int64_t bytes) const {
  const fs::path path = path_ / "samples.txt";
  if (!is_there(path)) return;
  OutputFile file(path, OutputFile::Mode::kAppend);
  file.truncate(static_cast<uint64_t>(bytes));
  file.close();
}

int64_t RunDirectory::append_sample(std::string_view text) const {
  OutputFile file(path_ / "samples.txt", OutputFile::Mode::kAppend);
  file.write(text);
  file.close();
  return static_cast<int64_t>(text.size());
}

}  // namespace zoo
