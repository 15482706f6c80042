#pragma once
// The kernels of a training step on a GPU as one graph (CUDA Graphs; Gray 2019, Nguyen et al. 2021). The
// graph is recorded once; then one call starts it. A small model's step has hundreds of kernels of some
// microseconds each, and a CPU cannot start them as fast as a GPU finishes them.

#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "data/batch.h"

namespace zoo {

/// Runs the function that makes the gradients of a step. After a few steps with batches of the same shapes it
/// records the step, and from then on it replays every step of these shapes. Steps of other shapes, such as
/// the last batch of an epoch, run as they are. Random numbers are the same as without recording.
class StepGraph {
 public:
  /// Makes the gradients of the parameters, which have none yet, and returns numbers on the device. It must
  /// not wait for the device, and must do the same for the same shapes and scale.
  using Body = std::function<torch::Tensor(const std::vector<Batch>& batches)>;

  /// `state`: what a step changes besides gradients, such as the running statistics of batch norm. Throws
  /// ConfigError if there are no graphs on this kind of device.
  StepGraph(std::vector<torch::Tensor> parameters, std::vector<torch::Tensor> state, torch::Device device);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Does the same as body(batches). The batches are on the CPU or on the device. `scale` is a number that
  /// body uses; when it changes, the step is recorded again. The next call overwrites the result. Throws
  /// TrainingError if the step cannot be recorded.
  torch::Tensor run(const std::vector<Batch>& batches, double scale, const Body& body);

 private:
  struct Recording;
  void record(const std::vector<Batch>& batches, const Body& body);

  std::vector<torch::Tensor> parameters_, state_;
  torch::Device device_;
  std::vector<int64_t> shapes_;  // of the last batches
  double scale_ = 0;
  int n_alike_ = 0;  // steps in a row with these shapes and scale
  std::unique_ptr<Recording> recording_;
};

}  // namespace zoo
