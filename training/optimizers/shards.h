#pragma once
// The optimiser's state dealt out to the processes (ZeRO, stage 1; Rajbhandari et al. 2020): each keeps and
// updates that of its own parameters, and gives the others the new weights.

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "io/safetensors.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/parameters.h"
#include "training/parallel/process_group.h"

namespace zoo {

class Shards {
 public:
  /// Deals out whole parameters, since Muon and Adafactor look at whole matrices: the largest first, each to
  /// the process that has least. The same in every process. `processes` outlives this object.
  Shards(const ProcessGroup& processes, std::vector<Parameter> parameters);

  /// The process that keeps the state of each parameter.
  const std::vector<int64_t>& owners() const { return owners_; }
  /// Those of this process.
  std::vector<Parameter> own() const;
  /// After a step: every process gets the parameters of the others. Collective.
  void share() const;
  /// The whole state of an optimiser of `config`, of whose parts `own` is this process's: on the CPU of
  /// the first process; empty in the others. Collective.
  TensorMap gather(const OptimizerConfig& config, const Optimizer& own) const;

 private:
  const ProcessGroup& processes_;
  std::vector<Parameter> parameters_;
  std::vector<int64_t> owners_;
  std::vector<torch::Tensor> packed_;  // by process: its small parameters in one piece
};

}  // namespace zoo
