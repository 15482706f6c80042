#pragma once
// The directory of a run while it is being trained.

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "io/file_lock.h"
#include "training/tasks/experiment.h"
#include "training/tasks/task.h"

namespace zoo {

/// What to do where the run directory holds a run already.
enum class ExistingRun { refuse, resume, replace };

/// Where a run is: `wanted`, or runs/NAME if that is empty.
std::filesystem::path run_path(const Experiment& experiment, const std::filesystem::path& wanted);

/// Decides what becomes of a directory that holds a run already, and keeps the files that training adds to.
/// One process at a time: RUN/.lock is locked while this object lives.
///
/// A run that is replaced stays beside its successor, as RUN.before-overwrite, until that has something to
/// show for itself (committed()). It is put back where that never happens; where the process is killed, the
/// next one says where it is.
class RunDirectory {
 public:
  /// Changes nothing in a run yet. Throws UsageError (the run exists and is neither resumed nor replaced;
  /// another process trains it; the directory holds other things), ConfigError (it is resumed with other keys
  /// than those that may change), SystemError.
  RunDirectory(const Experiment& experiment, const std::filesystem::path& path, ExistingRun existing);
  /// Puts back what was to be replaced and was not.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Whether an earlier run is resumed.
  bool goes_on() const { return goes_on_; }
  /// The vocabulary of the run that is resumed.
  Vocabulary vocabulary() const;
  /// Empties the directory, setting a run that is replaced aside, unless one is resumed; writes configuration
  /// and vocabulary. Throws SystemError.
  void begin(const Vocabulary& vocabulary);
  /// To be called when there is a checkpoint: the run that this one replaces goes. (The destructor asks
  /// again.)
  void committed();
  /// Where the run that is resumed goes on; none if it was stopped before its first checkpoint.
  std::optional<std::filesystem::path> checkpoint() const;

  /// Forgets what a run that was killed wrote to samples.txt after its last checkpoint.
  void truncate_samples(int64_t bytes) const;
  /// Returns the bytes added.
  int64_t append_sample(std::string_view text) const;

 private:
  bool resumes() const;
  bool successor_died() const;
  std::unique_ptr<FileLock> lock() const;
  void make_room();
  void put_back();

  Experiment experiment_;
  std::filesystem::path path_, replaced_;  // RUN, RUN.before-overwrite
  ExistingRun existing_;
  bool goes_on_ = false;
  bool made_ = false;      // the directory, and nothing in it yet
  bool replaces_ = false;  // there is an earlier run to be put back
  std::unique_ptr<FileLock> lock_;
};

}  // namespace zoo
