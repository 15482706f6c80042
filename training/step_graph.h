#pragma once
// The kernels of a training step on a GPU as one graph (CUDA Graphs; Gray 2019, Nguyen et al. 2021). The
// graph is recorded once; then one call starts it. A small model's step has hundreds of kernels of some
// microseconds each, and a CPU cannot start them as fast as a GPU finishes them.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "data/batch.h"

namespace zoo {

/// What to do about a step that cannot be recorded.
enum class Unrecordable { refuse, run_as_it_is };

/// Runs the function that makes the gradients of a step. After a few steps with batches of the same shapes it
/// records the step, and from then on it replays every step of these shapes. There is a recording for each of
/// the first few shapes, such as buckets of lengths; steps of other shapes, such as the last batch of an
/// epoch, run as they are. Random numbers are the same as without recording.
class StepGraph {
 public:
  /// Makes the gradients of the parameters, which have none yet, and returns numbers on the device. It must
  /// not wait for the device, and must do the same for the same shapes and scale.
  using Body = std::function<torch::Tensor(const std::vector<Batch>& batches)>;

  /// `state`: what a step changes besides gradients, such as the running statistics of batch norm. Throws
  /// ConfigError if there are no graphs on this kind of device.
  StepGraph(std::vector<torch::Tensor> parameters, std::vector<torch::Tensor> state, torch::Device device,
            Unrecordable unrecordable = Unrecordable::refuse);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Does the same as body(batches). The batches are on the CPU or on the device. `scale` is a number that
  /// body uses; when it changes, the step is recorded again. The next call overwrites the result. Throws
  /// TrainingError if the step cannot be recorded, unless it runs as it is.
  torch::Tensor run(const std::vector<Batch>& batches, double scale, const Body& body);
  /// Whether body is being recorded now.
  bool is_recording() const { return is_recording_; }
  /// Why steps run as they are; nothing as long as they are recorded.
  const std::optional<std::string>& obstacle() const { return obstacle_; }

 private:
  struct Recording;
  using Shapes = std::vector<int64_t>;
  std::unique_ptr<Recording> record(const std::vector<Batch>& batches, const Body& body);
  torch::Tensor replay(Recording& recording, const std::vector<Batch>& batches);
  torch::Tensor run_as_it_is(const std::vector<Batch>& batches, const Body& body, int64_t n_before);
  void give_up(const std::string& obstacle);

  std::vector<torch::Tensor> parameters_, state_;
  torch::Device device_;
  Unrecordable unrecordable_;
  double scale_ = 0;
  std::map<Shapes, int64_t> n_steps_;  // as they are, of batches of some shapes
  std::map<Shapes, std::unique_ptr<Recording>> recordings_;
  std::optional<std::string> obstacle_;
  bool is_recording_ = false;
};

}  // namespace zoo
