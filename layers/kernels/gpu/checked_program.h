#pragma once
// Texts that are used only after they have given the right results on the card.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <c10/core/Device.h>

#include "layers/kernels/gpu/gpu_program.h"

namespace zoo {

/// One text for all devices. It is compiled for a device and checked there at its first use.
class CheckedProgram {
 public:
  /// Compares what the text computes with what LibTorch's operations compute. Gradients are recorded.
  using Agrees = std::function<bool(const KernelProgram& program, c10::Device device)>;

  /// `name`: for messages. `file`: that of the text, without its ending.
  CheckedProgram(std::string name, std::string file, const char* text, Agrees agrees);

  /// Null on other devices than CUDA's, and where the text cannot be compiled or does not agree, of which
  /// LibTorch then warns once. The program lives as long as this object.
  const KernelProgram* on(c10::Device device);

 private:
  std::unique_ptr<const KernelProgram> made_for(c10::Device device) const;

  std::string name_, file_;
  const char* text_;
  Agrees agrees_;
  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::unique_ptr<const KernelProgram>> programs_;
};

}  // namespace zoo
