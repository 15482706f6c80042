#include "base/device_graph.h"

#include <c10/util/Exception.h>

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>

namespace zoo {
namespace {

class GraphOfLibTorch final : public DeviceGraph {
 public:
  explicit GraphOfLibTorch(c10::DeviceType device) : graph_(at::create_graph_impl(device)) {}
  void begin(const DeviceGraph* other) override {
    const auto* const before = dynamic_cast<const GraphOfLibTorch*>(other);
    graph_->capture_begin(before ? before->graph_->pool() : at::MempoolId_t{0, 0},
                          at::GraphCaptureMode::ThreadLocal);
  }
  void end() override { graph_->capture_end(); }
  void replay() override { graph_->replay(); }

 private:
  std::unique_ptr<at::GraphImplInterface> graph_;
};

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph(c10::DeviceType device) {
  return at::has_graph_impl(device) ? std::make_unique<GraphOfLibTorch>(device) : nullptr;
}

}  // namespace zoo
#elif defined(ZOO_HAS_CUDA_HEADERS)
#include <ATen/cuda/CUDAGraph.h>

namespace zoo {
namespace {

class GraphOfCuda final : public DeviceGraph {
 public:
  void begin(const DeviceGraph* other) override {
    const auto* const before = dynamic_cast<const GraphOfCuda*>(other);
    graph_.capture_begin(before ? before->pool_ : at::cuda::MempoolId_t{0, 0},
                         cudaStreamCaptureModeThreadLocal);
    pool_ = graph_.pool();
  }
  void end() override { graph_.capture_end(); }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
  at::cuda::MempoolId_t pool_{0, 0};
};

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph(c10::DeviceType device) {
  return device == c10::DeviceType::CUDA ? std::make_unique<GraphOfCuda>() : nullptr;
}

}  // namespace zoo
#else

namespace zoo {

std::unique_ptr<DeviceGraph> make_device_graph(c10::DeviceType) { return nullptr; }

}  // namespace zoo
#endif

namespace zoo {

void record(DeviceGraph& graph, const DeviceGraph* other, const std::function<void()>& body) {
  try {
    graph.begin(other);
    body();
  } catch (...) {
    try {
      graph.end();
    } catch (const c10::Error&) {
      // The caller hears of the first error.
    }
    throw;
  }
  graph.end();
}

}  // namespace zoo
