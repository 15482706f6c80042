#pragma once
// zoo lens --train: a lens of a model, from data.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/causes/lens_training.h"
#include "apps/use/causes/inputs.h"

namespace zoo {

struct TrainLensArguments {
  std::vector<std::string> data;  // files; empty: no training
  std::optional<int64_t> steps, seed;
  std::optional<double> lr;
};
/// Declares --train, --steps, --lr and --seed.
void add_train_lens(CLI::App& command, TrainLensArguments& arguments);
/// Throws UsageError if there are options of a training without one.
void require_training(const TrainLensArguments& arguments);

/// Trains a lens of the run and writes it to `out`.
LensTraining make_lens(const CauseRun& run, const TrainLensArguments& arguments,
                       const std::optional<std::filesystem::path>& out);
/// What it does on the batches that were held out, as a table.
void print(const LensTraining& training);

}  // namespace zoo
