#include "training/run_directory.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "io/error.h"
#include "io/files.h"
#include "io/output_file.h"
#include "training/checkpoint.h"
#include "training/run.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// Whether a run that goes on must have the same value: what decides about shapes, data order or random
/// numbers.
bool is_fixed(std::string_view key) {
  constexpr auto fixed = std::to_array<std::string_view>({"task", "training.seed", "training.batch_size",
                                                          "training.batch_tokens", "training.optimizer.type",
                                                          "training.optimizer.momentum"});
  if (key == "data.test") return false;
  return key.starts_with("data.") || key.starts_with("model.") ||
         std::find(fixed.begin(), fixed.end(), key) != fixed.end();
}

/// Throws ConfigError for the first fixed key in which `wanted` differs from what the run was started with.
void check_same(const fs::path& run_dir, const Experiment& started, const Experiment& wanted) {
  const auto before = flatten(started), now = flatten(wanted);
  const auto value_in = [](const std::vector<ConfigValue>& values, const std::string& key) {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.key == key; });
    return found == values.end() ? std::string("null") : found->value;
  };
  for (const auto& [key, value] : now) {
    const auto old = value_in(before, key);
    if (is_fixed(key) && old != value) {
      throw ConfigError(
          fmt::format("{}: this run was started with {}={}, not {}; set it back, or train anew with "
                      "--overwrite or another --out",
                      (run_dir / "config.yaml").string(), key, old, value));
    }
  }
}

bool is_empty_or_missing(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return true;
  return fs::is_directory(path, error) && fs::is_empty(path, error);
}

}  // namespace

RunDirectory::RunDirectory(const Experiment& experiment, const fs::path& path, ExistingRun existing)
    : experiment_(experiment), path_(path.empty() ? fs::path("runs") / experiment.name : path) {
  if (is_run(path_)) {
    if (existing == ExistingRun::refuse) {
      throw UsageError(fmt::format("{}: this run exists; --resume goes on with it, --overwrite replaces it",
                                   path_.string()));
    }
    if (existing == ExistingRun::resume) {
      check_same(path_, read_run_experiment(path_), experiment_);
      goes_on_ = true;
    }
  } else if (!is_empty_or_missing(path_) && existing != ExistingRun::resume) {
    // A run that died before its configuration was written may be resumed; anything else is somebody's files.
    throw UsageError(
        fmt::format("{}: exists, but is not a run; name another directory with --out", path_.string()));
  }
}

Vocabulary RunDirectory::vocabulary() const { return read_run_vocabulary(path_); }

void RunDirectory::begin(const Vocabulary& vocabulary) {
  std::error_code error;
  if (!goes_on_ && is_run(path_)) {
    fs::remove_all(path_, error);
    if (error) throw SystemError(fmt::format("cannot replace '{}': {}", path_.string(), error.message()));
  }
  fs::create_directories(path_, error);
  if (error) throw SystemError(fmt::format("cannot make '{}': {}", path_.string(), error.message()));
  if (!goes_on_) write_run_vocabulary(path_, vocabulary);
  // The configuration makes the directory a run: it comes last.
  write_file_atomically(path_ / "config.yaml", dump_config(experiment_));
}

std::optional<fs::path> RunDirectory::checkpoint() const {
  return goes_on_ ? newest_checkpoint(path_) : std::nullopt;
}

void RunDirectory::truncate_samples(int64_t bytes) const {
  const fs::path path = path_ / "samples.txt";
  std::error_code error;
  if (!fs::exists(path, error)) return;
  if (fs::file_size(path, error) <= static_cast<uintmax_t>(bytes)) return;
  fs::resize_file(path, static_cast<uintmax_t>(bytes), error);
  if (error) throw SystemError(fmt::format("cannot write '{}': {}", path.string(), error.message()));
}

int64_t RunDirectory::append_sample(std::string_view text) const {
  OutputFile file(path_ / "samples.txt", OutputFile::Mode::kAppend);
  file.write(text);
  file.close();
  return static_cast<int64_t>(text.size());
}

}  // namespace zoo
