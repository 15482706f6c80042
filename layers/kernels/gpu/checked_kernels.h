#pragma once
// Kernels that are used only after they have given the right results on the card.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include "base/error.h"

namespace zoo {

/// One kernel for each device. It is compiled and checked at its first use.
template <class Kernel>
class CheckedKernels {
 public:
  /// Throws SystemError where there is no kernel.
  using Make = std::function<std::unique_ptr<const Kernel>(c10::Device device)>;
  /// Compares the kernel's results with those of LibTorch's operations.
  using Agrees = std::function<bool(const Kernel& kernel, c10::Device device)>;

  CheckedKernels(std::string name, Make make, Agrees agrees)
      : name_(std::move(name)), make_(std::move(make)), agrees_(std::move(agrees)) {}

  /// Null on other devices than CUDA's, and where the kernel cannot be made or does not agree, of which
  /// LibTorch then warns once.
  const Kernel* on(c10::Device device) {
    if (!device.is_cuda()) return nullptr;
    const std::scoped_lock lock(mutex_);
    const auto found = kernels_.find(device.index());
    if (found != kernels_.end()) return found->second.get();
    return kernels_.emplace(device.index(), made_for(device)).first->second.get();
  }

 private:
  std::unique_ptr<const Kernel> made_for(c10::Device device) const {
    std::string problem;
    try {
      auto kernel = make_(device);
      if (agrees_(*kernel, device)) return kernel;
      problem = "its results are not those of LibTorch's operations";
    } catch (const SystemError& error) {
      problem = error.what();
    }
    TORCH_WARN("the kernel for ", name_, " is left out on ", device.str(), ", which is slower: ", problem);
    return nullptr;
  }

  std::string name_;
  Make make_;
  Agrees agrees_;
  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::unique_ptr<const Kernel>> kernels_;
};

}  // namespace zoo
