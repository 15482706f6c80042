#pragma once
// Steps of optimisers on a GPU by a kernel of our own (optimizer.cu): one pass over all parameters, which
// also writes the copies in 16 bits that products read.

#include <vector>

#include <torch/types.h>

#include "kernels/gpu/gpu_program.h"

namespace zoo {

enum class StepRule { adamw, adam, lion, sgd };

/// The rule and the numbers of a step; optimizers/library_rules.h says what they are.
struct StepNumbers {
  StepRule rule = StepRule::adamw;
  double lr = 0, weight_decay = 0;
  double beta1 = 0, beta2 = 0;  // sgd: beta1 is the momentum
  double eps = 0;
};

/// Lists of equal length, or empty where the rule needs none. Parameters, gradients and state are float,
/// those of a parameter of one shape; parameters and state have no gaps in memory.
struct SteppedTensors {
  const std::vector<torch::Tensor>& parameters;
  const std::vector<torch::Tensor>& gradients;
  std::vector<torch::Tensor> first = {}, second = {};  // the rule's state
  std::vector<torch::Tensor> n_steps = {};             // () float, without this step
  std::vector<torch::Tensor> rounded = {};             // bfloat16 or half, or undefined
};

/// Takes the step, and writes the copies. False, and nothing has happened, where the kernel does not serve:
/// for other tensors, on other devices than CUDA's, or if it does not agree with LibTorch's there
/// (checked_program.h).
bool gpu_step(const StepNumbers& numbers, const SteppedTensors& tensors);

/// The same by a program.
void step_by(const KernelProgram& program, const StepNumbers& numbers, const SteppedTensors& tensors);

}  // namespace zoo
