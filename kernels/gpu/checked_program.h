#pragma once
// Texts that are used only after they have given the right results on the card.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <c10/core/Device.h>

#include "kernels/gpu/gpu_program.h"

namespace zoo {

/// Makes the program of a text for a device. `file` is the name of the text's file, without its ending.
/// Throws SystemError.
using MakeProgram = std::unique_ptr<const KernelProgram> (*)(const std::string& file, const std::string& text,
                                                             c10::Device device);
/// Devices of this type have our kernels from now on, which `make` makes; null: they have none any more.
/// CUDA's devices have them without this.
void register_kernels(c10::DeviceType type, MakeProgram make);
/// Whether devices of this type have our kernels, if they agree.
bool has_kernels(c10::Device device);

/// One text for all devices. It is compiled for a device and checked there at its first use.
class CheckedProgram {
 public:
  /// Compares what the text computes with what LibTorch's operations compute. Gradients are recorded, and
  /// nothing is in mixed precision.
  using Agrees = std::function<bool(const KernelProgram& program, c10::Device device)>;

  /// Messages call the text `name`. `file` is the name of its file, without its ending.
  CheckedProgram(std::string name, std::string file, std::string text, Agrees agrees);

  /// Null on devices without our kernels (has_kernels()), and where the text cannot be compiled or does not
  /// agree, of which LibTorch then warns once. The program lives as long as this object.
  const KernelProgram* on(c10::Device device);

 private:
  std::unique_ptr<const KernelProgram> made_for(c10::Device device) const;

  std::string name_, file_, text_;
  Agrees agrees_;
  std::mutex mutex_;
  std::map<c10::DeviceIndex, std::unique_ptr<const KernelProgram>> programs_;
};

}  // namespace zoo
