#pragma once
// How a trained mixture of experts divides the tokens of its validation data.

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoints/run.h"

namespace zoo {

/// The experts of one layer.
struct LayerLoad {
  std::string place;            // "layers.3.feed_forward", see layers/attention/activation_observer.h
  std::vector<int64_t> tokens;  // of each of the E experts

  /// Tokens of the busiest expert, divided by the mean over all; 0 without tokens.
  double busiest() const;
  int64_t n_idle() const;
};

/// Of each layer with experts, the tokens that each expert had in the first batches of the run's validation
/// data, at most `most_batches`, without padding; empty for a model without experts. Throws DataError.
std::vector<LayerLoad> expert_loads(const Run& run, int64_t most_batches);

}  // namespace zoo
