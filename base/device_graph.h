#pragma once
// A device's graph of kernels (CUDA Graphs), as the installed LibTorch offers it.

#include <functional>
#include <memory>

#include <c10/core/Device.h>

namespace zoo {

/// Kernels that are recorded once and then started together.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  /// Records the work of the current stream until end(). The work is not done. Other threads may use the
  /// device meanwhile. Tensors that are made meanwhile may have the memory of tensors that `other` made while
  /// it was recorded, and that are gone: the two graphs must not run at the same time. Null: it has memory of
  /// its own.
  virtual void begin(const DeviceGraph* other = nullptr) = 0;
  virtual void end() = 0;
  virtual void replay() = 0;
};

/// A new graph on this kind of device; null if LibTorch has none for it. LibTorch has one for CUDA from 2.13
/// on; an older one needs the headers of CUDA when this program is built (ZOO_HAS_CUDA_HEADERS).
std::unique_ptr<DeviceGraph> make_device_graph(c10::DeviceType device);

/// Records what `body` asks of the device; `other` as for begin(). If `body` throws, the recording ends all
/// the same, so that the stream can be used again.
void record(DeviceGraph& graph, const DeviceGraph* other, const std::function<void()>& body);

}  // namespace zoo
