#pragma once
// Kernels of our own for NVIDIA's GPUs. Their texts are in the program (*.cu in this folder); they are
// compiled for a card at their first use there, and kept in $ZOO_CACHE.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace zoo {

/// Blocks and threads of a call.
struct LaunchSize {
  int64_t blocks = 1;
  int64_t threads = 1;
};

/// The functions of a text.
class KernelProgram {
 public:
  virtual ~KernelProgram() = default;
  /// Starts a function. `arguments`: the address of each argument. Throws SystemError.
  virtual void launch(const std::string& function, const LaunchSize& size,
                      std::vector<void*> arguments) const = 0;
};

/// A compiled text on one device.
class GpuProgram final : public KernelProgram {
 public:
  /// Compiles whole_text(text), or finds the result in the cache.
  /// `name`: for the cache and messages. Throws SystemError if there is no compiler, no driver, or an error.
  GpuProgram(const std::string& name, const std::string& text, c10::Device device);
  ~GpuProgram() override;
  GpuProgram(const GpuProgram&) = delete;
  GpuProgram& operator=(const GpuProgram&) = delete;

  /// On LibTorch's current stream. Does not wait.
  void launch(const std::string& function, const LaunchSize& size,
              std::vector<void*> arguments) const override;

 private:
  struct Driver;
  struct Module;
  c10::Device device_;
  std::unique_ptr<Module> module_;
};

/// A text behind those that all share: what the compiler reads.
std::string whole_text(const std::string& text);
/// The name of the cached machine code of a text.
std::string cached_code_name(const std::string& name, const std::string& text,
                             const std::string& architecture, const std::string& compiler_version);

}  // namespace zoo
