#pragma once
// The directory of a run while it is being trained.

#include <filesystem>
#include <optional>
#include <string_view>

#include "training/experiment.h"
#include "training/task.h"
#include "training/trainer.h"

namespace zoo {

/// Decides what becomes of a directory that holds a run already, and keeps the files that training adds to.
class RunDirectory {
 public:
  /// Changes nothing yet. Throws UsageError (the run exists and is neither resumed nor replaced), ConfigError
  /// (it is resumed with other keys than those that may change).
  RunDirectory(const Experiment& experiment, const std::filesystem::path& path, ExistingRun existing);

  const std::filesystem::path& path() const { return path_; }
  /// Whether an earlier run is resumed.
  bool goes_on() const { return goes_on_; }
  /// The vocabulary of the run that is resumed.
  Vocabulary vocabulary() const;
  /// Makes the directory, without what an earlier run left unless that is resumed, and writes configuration
  /// and vocabulary. Throws SystemError.
  void begin(const Vocabulary& vocabulary);
  /// Where the run that is resumed goes on; none if it was stopped before its first checkpoint.
  std::optional<std::filesystem::path> checkpoint() const;

  /// Forgets what a run that was killed wrote to samples.txt after its last checkpoint.
  void truncate_samples(int64_t bytes) const;
  /// Returns the bytes added.
  int64_t append_sample(std::string_view text) const;

 private:
  Experiment experiment_;
  std::filesystem::path path_;
  bool goes_on_ = false;
};

}  // namespace zoo
