#pragma once
// The kernels of a GPU's step as one graph (CUDA Graphs; Gray 2019, Nguyen et al. 2021): recorded once, then
// started by one call. A small model's step is hundreds of kernels of some microseconds each, and a processor
// cannot start them as fast as a GPU ends them.

#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "models/batch.h"

namespace zoo {

/// Runs what makes the gradients of a step. The first steps run as they are; when as many batches of the same
/// shapes have come as it takes until everything is where it stays, the step is recorded, and from then on
/// every step of these shapes is a replay. Others, as the last batch of an epoch, run as they are. Random
/// numbers are those of steps that are not recorded.
class StepGraph {
 public:
  /// Makes the parameters' gradients, which have none yet, and returns numbers on the device. It must not
  /// wait for the device, and does the same for the same shapes and scale.
  using Body = std::function<torch::Tensor(const std::vector<Batch>& batches)>;

  /// Throws ConfigError where there are no graphs on this kind of device.
  StepGraph(std::vector<torch::Tensor> parameters, torch::Device device);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// What body(batches) does; the batches are on the CPU or on the device. `scale` is a number that body
  /// uses: with another one the step is recorded anew. The result is overwritten by the next call. Throws
  /// TrainingError where the step cannot be recorded.
  torch::Tensor run(const std::vector<Batch>& batches, double scale, const Body& body);

 private:
  struct Recording;
  void record(const std::vector<Batch>& batches, const Body& body);

  std::vector<torch::Tensor> parameters_;
  torch::Device device_;
  std::vector<int64_t> shapes_;  // of the last batches
  double scale_ = 0;
  int n_alike_ = 0;  // steps in a row that had them
  std::unique_ptr<Recording> recording_;
};

}  // namespace zoo
