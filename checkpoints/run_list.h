#pragma once
// What runs are, without their weights: their configuration, how far they are, and how good.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zoo {

/// What happens to a run.
enum class RunActivity {
  running,   // a process trains it
  finished,  // as long as its configuration says
  stopped,   // it can be resumed
  failed,    // its training could not go on
  made,      // by an import, a merge or an average: it was not trained itself
  damaged    // it cannot be read
};
constexpr auto config_names(RunActivity) {
  return std::to_array<std::string_view>({"running", "finished", "stopped", "failed", "made", "damaged"});
}

struct RunSummary {
  std::filesystem::path dir;  // relative to the directory that was listed
  RunActivity activity = RunActivity::damaged;
  std::string name = {}, task = {}, architecture = {};
  std::optional<int64_t> parameters = {};  // numbers in its weights; with adapters, in theirs
  int64_t step = 0, steps = 0;             // done, and to be done
  double seconds = 0;                      // of training
  std::string metric = {};                 // that chose its weights, such as loss
  std::optional<double> best = {};         // absent before the first evaluation
  int64_t best_step = 0;
  std::filesystem::file_time_type changed = {};  // when its last file was written
  /// Keys whose values differ among the runs of its task in the list, with its own values. Names, and paths
  /// of data, do not count.
  std::vector<std::pair<std::string, std::string>> differs = {};
  std::string problem = {};  // of a failed or damaged run: one line
};

/// The runs in `dir` and, up to three levels deep, in its directories; those that have changed last come
/// first. A run is not searched for other runs. Links are not followed. Throws UsageError if there is no such
/// directory.
std::vector<RunSummary> list_runs(const std::filesystem::path& dir);

}  // namespace zoo
