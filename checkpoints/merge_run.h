#pragma once
// A run with adapters as an ordinary run.

#include <cstdint>
#include <filesystem>

namespace zoo {

struct MergedRun {
  std::filesystem::path run_dir;
  int64_t n_adapters = 0;
};

/// Writes the run `out`: the weights of `run_dir` with their adapters added (W + (alpha / rank) B A), and the
/// configuration without training.lora. Throws UsageError (`out` exists, the run has no adapters),
/// CheckpointError (as Run::open; the base is not the one that was trained with).
MergedRun merge_run(const std::filesystem::path& run_dir, const std::filesystem::path& out);

}  // namespace zoo
