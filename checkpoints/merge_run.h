#pragma once
// A run with adapters as an ordinary run.

#include <cstdint>
#include <filesystem>

namespace zoo {

class Run;

struct MergedRun {
  std::filesystem::path run_dir;
  int64_t n_adapters = 0;
};

/// Writes the run `out`: the weights of `run_dir` with their adapters added (W + (alpha / rank) B A), and the
/// configuration without training.lora. `run_dir` may be an adapter of PEFT, with its `base` if that is not
/// the one that its adapter_config.json names. Throws UsageError (`out` exists, the run has no adapters),
/// CheckpointError (as Run::open; the base is not the one that was trained with).
MergedRun merge_run(const std::filesystem::path& run_dir, const std::filesystem::path& out,
                    const std::filesystem::path& base = {});

/// Checks the base of an opened run with adapters by its hash, and adds the adapters to the weights. Returns
/// their number. Throws CheckpointError.
int64_t merge_adapters_of(const Run& run);

}  // namespace zoo
