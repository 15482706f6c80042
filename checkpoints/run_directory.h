#pragma once
// The directory of a run while it is being trained.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "io/file_lock.h"
#include "tasks/experiment.h"
#include "tasks/task.h"

namespace zoo {

/// Files in the directory: one process at a time holds a lock on the first, and the second is there until the
/// run has its first checkpoint.
inline constexpr const char *kLockFile = ".lock", *kNoCheckpointYet = ".no-checkpoint-yet";

/// What to do if the run directory already holds a run.
enum class ExistingRun { refuse, resume, replace };

/// The path of a run: `wanted`, or runs/NAME if that is empty.
std::filesystem::path run_path(const Experiment& experiment, const std::filesystem::path& wanted);

/// Throws ConfigError for the first key in which `wanted` differs from the run's configuration, and on which
/// shapes, the order of the data, random numbers or the choice of the best weights depend.
void check_can_resume_as(const std::filesystem::path& run_dir, const Experiment& wanted);

/// Decides what happens to a directory that already holds a run, and appends to the samples of a training.
/// Only one process can use a directory at a time: RUN/.lock is locked while this object lives.
///
/// A run that is replaced stays beside its successor, as RUN.before-overwrite, until the successor has a
/// checkpoint (committed()). If it never has one, the old run is put back. If the process is killed, the next
/// one says where the old run is.
///
/// A run without a checkpoint starts over when it is resumed. RUN/.no-checkpoint-yet is there until it has
/// its first one, so that this does not happen to a run whose checkpoints somebody has removed.
///
/// The run may come from a stranger, so links in it are not followed; the path of the run itself may be a
/// link.
class RunDirectory {
 public:
  /// Does not change a run yet. Throws UsageError (the run exists and is neither resumed nor replaced;
  /// another process trains it; the directory holds other files; the run is resumed, but has weights and no
  /// checkpoint), ConfigError (the run is resumed, but keys have changed that must not), CheckpointError
  /// (something in the run is a link), SystemError.
  RunDirectory(const Experiment& experiment, const std::filesystem::path& path, ExistingRun existing);
  /// Puts back a run whose replacement has no checkpoint, and removes what did not become a run.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Whether an earlier run is resumed.
  bool goes_on() const { return goes_on_; }
  /// Unless a run is resumed, empties the directory, and sets a run that is replaced aside. Writes
  /// configuration, with `steps` instead of epochs, and vocabulary, and lets `fill` write what else a new run
  /// begins with, such as a checkpoint. Throws SystemError, and what `fill` throws.
  void begin(const Vocabulary& vocabulary, int64_t steps, const std::function<void()>& fill);
  /// To be called when there is a checkpoint: removes the run that this one replaces. (The destructor checks
  /// again whether there is one.)
  void committed();
  /// The checkpoint with which the resumed run goes on; none if it was stopped before its first checkpoint.
  std::optional<std::filesystem::path> checkpoint() const;

  /// Cuts samples.txt to the given length: removes what a killed run wrote after its last checkpoint.
  void truncate_samples(int64_t bytes) const;
  /// Appends to samples.txt. Returns the number of bytes added.
  int64_t append_sample(std::string_view text) const;

 private:
  bool resumes() const;
  void check_can_go_on() const;
  bool successor_died() const;
  std::unique_ptr<FileLock> lock() const;
  void make_room();
  void put_back();

  Experiment experiment_;
  std::filesystem::path path_, replaced_;  // RUN, RUN.before-overwrite
  ExistingRun existing_;
  bool goes_on_ = false;
  bool made_ = false;      // this object has made the directory, which is no run yet
  bool begun_ = false;     // this object is writing the files that make it a run
  bool replaces_ = false;  // there is an earlier run to put back
  std::unique_ptr<FileLock> lock_;
};

}  // namespace zoo
