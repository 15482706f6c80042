#include "training/step_graph.h"

#include <string_view>
#include <utility>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/types.h>

#include "base/device.h"
#include "base/device_graph.h"
#include "base/error.h"
#include "base/random.h"
#include "base/random_state.h"
#include "base/recordable.h"
#include "base/stream_scope.h"

namespace zoo {
namespace {

// Recording starts after these steps, in which libraries load kernels, choose between them, and allocate
// memory that they keep.
constexpr int64_t kStepsBefore = 3;
// A recording holds memory. Shapes that are seen later, and rarely, run as they are.
constexpr size_t kMostRecordings = 16, kMostShapes = 256;

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

/// Nothing can be recorded on the default stream. Null on a CPU.
std::unique_ptr<StreamScope> stream_for_recording(torch::Device device) {
  if (device.is_cpu()) return nullptr;
  return std::make_unique<StreamScope>(
      c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device));
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
                     torch::Device device, Unrecordable unrecordable)
    : parameters_(std::move(parameters)),
      state_(std::move(state)),
      device_(device),
      unrecordable_(unrecordable) {
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
  if (obstacle_) return body(batches);
  if (scale != scale_) {
    recordings_.clear();
    n_steps_.clear();
    scale_ = scale;
  }
  auto shapes = shapes_of(batches);
  if (const auto found = recordings_.find(shapes); found != recordings_.end())
    return replay(*found->second, batches);
  const bool is_known = n_steps_.contains(shapes);
  if (recordings_.size() == kMostRecordings || (!is_known && n_steps_.size() == kMostShapes))
    return body(batches);
  if (const int64_t before = n_steps_[shapes]++; before < kStepsBefore)
    return run_as_it_is(batches, body, before);
  auto recording = record(batches, body);
  if (!recording) return body(batches);
  return replay(*recordings_.emplace(std::move(shapes), std::move(recording)).first->second, batches);
}

/// The last step before a recording shows whether it can succeed.
torch::Tensor StepGraph::run_as_it_is(const std::vector<Batch>& batches, const Body& body, int64_t n_before) {
  if (n_before + 1 < kStepsBefore || device_.is_cpu()) return body(batches);
  std::vector<Batch> there;  // their copies are not part of the recording
  for (const auto& batch : batches) there.push_back(batch.to(device_));
  const RecordableWatch watch(device_);
  auto result = body(there);
  if (const auto obstacle = watch.obstacle()) give_up(*obstacle);
  return result;
}

void StepGraph::give_up(const std::string& obstacle) {
  if (unrecordable_ == Unrecordable::refuse)
    throw TrainingError(fmt::format(
        "training.cuda_graphs: true: a step of this model cannot be recorded ({}): leave it out", obstacle));
  obstacle_ = obstacle;
  recordings_.clear();
}

torch::Tensor StepGraph::replay(Recording& recording, const std::vector<Batch>& batches) {
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto from = batches[i].to(device_).tensors(), to = recording.batches[i].tensors();
    for (size_t j = 0; j < to.size(); ++j) {
      if (to[j].defined()) to[j].copy_(from[j], /*non_blocking=*/true);
    }
  }
  for (size_t i = 0; i < recording.n_seeds; ++i) draw_seed();
  recording.graph->replay();
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = recording.gradients[i];
  return recording.result;
}

/// The computations here have no effect on training: the replay that follows takes the step. Null if it
/// cannot be recorded.
std::unique_ptr<StepGraph::Recording> StepGraph::record(const std::vector<Batch>& batches, const Body& body) {
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
  const auto stream = stream_for_recording(device_);
  const RandomScope random({0});
  {
    const RandomStateScope generator(device_, random_state(device_));
    body(recording->batches);  // the first run on this stream is not recorded
    take_gradients();
    synchronize(device_);
  }
  recording->graph = make_device_graph(device_.type());
  is_recording_ = true;
  std::optional<std::string> obstacle;
  try {
    const auto* const other = recordings_.empty() ? nullptr : recordings_.begin()->second->graph.get();
    SeedRecord seeds;  // NOLINT(misc-const-correctness): records seeds while it lives
    zoo::record(*recording->graph, other, [&] { recording->result = body(recording->batches); });
    recording->n_seeds = seeds.seeds().size();
  } catch (const c10::Error& error) {
    obstacle = error.what_without_backtrace();
  } catch (...) {
    is_recording_ = false;
    throw;
  }
  is_recording_ = false;
  recording->gradients = take_gradients();
  {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < state.size(); ++i) state_[i].copy_(state[i]);
  }
  synchronize(device_);
  if (!obstacle) return recording;
  recording.reset();
  give_up(*obstacle);
  return nullptr;
}

}  // namespace zoo
