#include "training/step_graph.h"

#include <string_view>
#include <utility>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/types.h>

#include "base/device.h"
#include "base/error.h"
#include "base/random.h"
#include "base/random_state.h"
#include "training/device_graph.h"

namespace zoo {
namespace {

// Recording starts after these steps, in which libraries load kernels, choose between them, and allocate
// memory that they keep.
constexpr int kStepsBefore = 3;

std::vector<int64_t> shapes_of(const std::vector<Batch>& batches) {
  std::vector<int64_t> shapes;
  for (const auto& batch : batches) {
    for (const auto& tensor : batch.tensors()) {
      shapes.push_back(tensor.defined() ? tensor.dim() : -1);
      if (tensor.defined()) shapes.insert(shapes.end(), tensor.sizes().begin(), tensor.sizes().end());
    }
  }
  return shapes;
}

Batch copied(const Batch& batch) {
  return batch.changed([](const torch::Tensor& tensor) { return tensor.clone(); });
}

/// While it lives, work goes to a separate stream: nothing can be recorded on the default stream.
class OwnStream {
 public:
  explicit OwnStream(torch::Device device) {
    if (!device.is_cpu())
      guard_ = std::make_unique<c10::StreamGuard>(
          c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
  }

 private:
  std::unique_ptr<c10::StreamGuard> guard_;  // g++ 12 takes an optional one for unset
};

/// Ends a recording that went wrong, so that the stream can be used again and the graph can be destroyed.
void end_broken(DeviceGraph& graph) {
  try {
    graph.end();
  } catch (const c10::Error&) {
    // The caller reports the first error.
  }
}

}  // namespace

/// A recorded step. Every replay reads and writes these same tensors.
struct StepGraph::Recording {
  std::unique_ptr<DeviceGraph> graph;
  std::vector<Batch> batches;
  std::vector<torch::Tensor> gradients;  // one per parameter; undefined where it has none
  torch::Tensor result;
  size_t n_seeds = 0;  // number of seeds that body draws
};

StepGraph::StepGraph(std::vector<torch::Tensor> parameters, std::vector<torch::Tensor> state,
                     torch::Device device)
    : parameters_(std::move(parameters)), state_(std::move(state)), device_(device) {
  if (make_device_graph(device.type())) return;
  if (device.is_cuda())
    throw ConfigError(
        "training.cuda_graphs: true needs LibTorch 2.13, or a program that was built with the headers of "
        "CUDA: "
        "leave it out");
  throw ConfigError(fmt::format(
      "training.cuda_graphs: true needs a GPU, but this training is on {}: leave it out", device.str()));
}

StepGraph::~StepGraph() = default;

torch::Tensor StepGraph::run(const std::vector<Batch>& batches, double scale, const Body& body) {
  auto shapes = shapes_of(batches);
  const bool alike = shapes == shapes_ && scale == scale_;
  if (recording_ && scale != scale_) recording_.reset();
  if (!recording_) {
    n_alike_ = alike ? n_alike_ + 1 : 1;
    shapes_ = std::move(shapes);
    scale_ = scale;
    if (n_alike_ <= kStepsBefore) return body(batches);
    record(batches, body);
  } else if (!alike) {
    return body(batches);
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto from = batches[i].to(device_).tensors(), to = recording_->batches[i].tensors();
    for (size_t j = 0; j < to.size(); ++j) {
      if (to[j].defined()) to[j].copy_(from[j], /*non_blocking=*/true);
    }
  }
  for (size_t i = 0; i < recording_->n_seeds; ++i) draw_seed();
  recording_->graph->replay();
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = recording_->gradients[i];
  return recording_->result;
}

/// The computations here have no effect on training: the replay that follows takes the step.
void StepGraph::record(const std::vector<Batch>& batches, const Body& body) {
  auto recording = std::make_unique<Recording>();
  for (const auto& batch : batches) recording->batches.push_back(copied(batch.to(device_)));
  const auto take_gradients = [this] {
    std::vector<torch::Tensor> gradients;
    for (auto& parameter : parameters_)
      gradients.push_back(std::exchange(parameter.mutable_grad(), torch::Tensor()));
    return gradients;
  };
  std::vector<torch::Tensor> state;
  for (const auto& tensor : state_) state.push_back(tensor.clone());
  synchronize(device_);
  const OwnStream stream(device_);
  const RandomScope random({0});
  {
    const RandomStateScope generator(device_, random_state(device_));
    body(recording->batches);  // the first run on this stream is not recorded
    take_gradients();
    synchronize(device_);
  }
  recording->graph = make_device_graph(device_.type());
  try {
    SeedRecord seeds;  // NOLINT(misc-const-correctness): records seeds while it lives
    recording->graph->begin();
    recording->result = body(recording->batches);
    recording->graph->end();
    recording->n_seeds = seeds.seeds().size();
  } catch (const c10::Error& error) {
    end_broken(*recording->graph);
    throw TrainingError(
        fmt::format("training.cuda_graphs: true: a step of this model cannot be recorded ({}): leave it out",
                    error.what_without_backtrace()));
  } catch (...) {
    end_broken(*recording->graph);
    throw;
  }
  recording->gradients = take_gradients();
  {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < state.size(); ++i) state_[i].copy_(state[i]);
  }
  synchronize(device_);
  recording_ = std::move(recording);
}

}  // namespace zoo
