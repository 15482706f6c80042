#pragma once
// The experts of a model divided among the processes that train it (GShard, Lepikhin et al. 2020, arXiv
// 2006.16668). Each of n processes has the matrices of E / n experts of every layer, their gradients and
// their optimiser's state, and works for the tokens of all (layers/expert_exchange.h). All else is in every
// process.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "io/safetensors.h"
#include "layers/experts.h"
#include "models/model.h"
#include "parallel/process_group.h"

namespace zoo {

class DividedExperts {
 public:
  /// Leaves this process its share of the experts of `model`, which is whole. Both outlive this object.
  /// Throws ConfigError if the number of experts is no multiple of the number of processes. Not collective.
  DividedExperts(const Model& model, const ProcessGroup& processes);

  /// Whether the name is that of a parameter with rows of this process's experts alone, or that of a state of
  /// the optimiser for one, such as PARAMETER.exp_avg.
  bool has(const std::string& name) const;
  /// Those of `tensors` that such parameters have as their gradients, and the others.
  struct Gradients {
    std::vector<torch::Tensor> own, shared;
  };
  Gradients sorted(const std::vector<torch::Tensor>& gradients) const;

  /// `own` with rows of all experts: complete in the first process, which has them on the CPU; of the others
  /// it is of no use. Collective.
  TensorMap gather(const TensorMap& own) const;
  /// Room for what gather() makes. What is not divided is shared with `own`.
  TensorMap room_for(const TensorMap& own) const;
  /// own ← its rows of `whole`, which room_for() made.
  void take_rows(const TensorMap& whole, const TensorMap& own) const;

  /// While it lives, the model has all experts, and works without the other processes. Afterwards it has the
  /// rows of this process, with the values that they were given meanwhile. There must be no gradients.
  class Whole {
   public:
    ~Whole();
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

   private:
    friend class DividedExperts;
    explicit Whole(const DividedExperts& experts);
    const DividedExperts& experts_;
    std::vector<torch::Tensor> own_;  // of each parameter
  };
  /// All experts, from all processes. Collective.
  std::unique_ptr<Whole> gathered() const;
  /// With any numbers for all experts, to be loaded. Not collective.
  std::unique_ptr<Whole> blank() const;

 private:
  /// One stacked map of a layer.
  struct Map {
    std::shared_ptr<LinearImpl> linear;
    std::vector<LinearPart> parts;  // of all experts
  };
  std::vector<LinearPart> own_parts(const Map& map) const;
  std::vector<torch::Tensor> parameters() const;  // weights and biases of the maps
  torch::Tensor own_rows(const torch::Tensor& whole) const;
  torch::Tensor room_for(const torch::Tensor& own) const;
  void fill(const torch::Tensor& whole, const torch::Tensor& own) const;

  const ProcessGroup& processes_;
  std::vector<std::shared_ptr<ExpertsImpl>> layers_;
  std::shared_ptr<const ExpertExchange> exchange_;
  std::vector<Map> maps_;
  std::vector<std::string> names_;  // of parameters(), sorted
};

}  // namespace zoo
