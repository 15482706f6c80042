#pragma once
// The optimiser's state sharded over the processes (ZeRO, stage 1; Rajbhandari et al. 2020). Each process
// keeps the state of its own parameters, updates these parameters, and broadcasts them to the others.

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "io/safetensors.h"
#include "optimizers/optimizer.h"
#include "optimizers/parameters.h"
#include "parallel/process_group.h"

namespace zoo {

class Shards {
 public:
  /// Assigns whole parameters to processes, because Muon and Adafactor need whole matrices. The largest comes
  /// first; each goes to the process that has the fewest elements so far. The result is the same in every
  /// process. `processes` outlives this object.
  Shards(const ProcessGroup& processes, std::vector<Parameter> parameters);

  /// The process that keeps the state of each parameter.
  const std::vector<int64_t>& owners() const { return owners_; }
  /// The parameters of this process.
  std::vector<Parameter> own() const;
  /// To be called after a step: every process gets the parameters of the others. Collective.
  void broadcast_parameters() const;
  /// The whole state of the optimiser `config`: on the CPU in the first process, empty in the others. `own`
  /// is this process's part of the optimiser. Collective.
  TensorMap gather_state(const OptimizerConfig& config, const Optimizer& own) const;

 private:
  const ProcessGroup& processes_;
  std::vector<Parameter> parameters_;
  std::vector<int64_t> owners_;
  std::vector<torch::Tensor> packed_;  // for each process its small parameters in one tensor
};

}  // namespace zoo
