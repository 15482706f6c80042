#pragma once
// Training the maps of a lens (Belrose et al. 2023, section 3), with the model itself frozen.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analysis/causes/trained_lens.h"
#include "data/batch.h"

namespace zoo {

struct LensTrainingOptions {
  int64_t steps = 250;            // of a batch each, as in the paper
  double lr = 1e-3;               // of Adam, betas 0.9 and 0.999; it falls linearly to 0
  uint64_t seed = 1;              // of the order of the batches, another in each epoch
  int64_t most_logits = 1 << 23;  // that are in memory at once
};

/// A lens, and what it does on the batches that were held out: the mean over their places of KL(final ‖
/// depth) in nats, for depths 0 … N-1.
struct LensTraining {
  std::string name = {};  // of the run
  std::string data = {};  // what was read
  LensTrainingOptions options = {};
  int64_t trained_batches = 0, held_out_batches = 0, held_out_places = 0;
  std::vector<double> before = {}, after = {};  // by the lens without maps, and by the trained one
  TrainedLens lens = {};
};

/// The batches that a training of so many steps can use: as many as it has steps, and those held out.
int64_t batches_for_lens(int64_t steps);

/// Begins with zeros, and lowers the sum over depths of the mean KL(final ‖ depth) at the places that the
/// batches predict. Of five batches the last one is held out, of two to four the last one of all. `batches`
/// are on the CPU. `progress` is called after each step. Throws UsageError for fewer than two batches and as
/// ObservationScope; CheckpointError if logits are not numbers, TrainingError if the maps become so.
LensTraining train_lens(
    Model& model, const std::vector<Batch>& batches, const LensTrainingOptions& options = {},
    const std::function<void(int64_t done, int64_t all)>& progress = [](int64_t, int64_t) {});

}  // namespace zoo
