#pragma once
// What the driver of NVIDIA's GPUs says, without LibTorch and without a CUDA toolkit.

#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

/// A version of CUDA.
struct CudaVersion {
  int major = 0, minor = 0;
  /// From CUDA's own form, 1000 · major + 10 · minor.
  static CudaVersion of(int64_t number);
  std::string text() const;  // "12.4"
  auto operator<=>(const CudaVersion&) const = default;
};

struct GpuInfo {
  std::string name;
  int64_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability
};

/// The driver's library, which is loaded while this object lives.
class CudaDriver {
 public:
  /// Nothing if the library cannot be loaded, or is another one.
  static std::optional<CudaDriver> load(const std::string& library = "libcuda.so.1");

  /// The newest CUDA that it supports; 0.0 if it does not say.
  CudaVersion version() const;
  /// The driver's error if it cannot be used, such as "no CUDA-capable device is detected (100)"; else empty.
  const std::string& problem() const { return problem_; }
  /// The GPUs that this process may use, as $CUDA_VISIBLE_DEVICES says. None if there is a problem.
  std::vector<GpuInfo> gpus() const;

 private:
  struct Functions;
  CudaDriver() = default;
  std::string text_of(int error) const;

  std::shared_ptr<void> library_;
  std::shared_ptr<const Functions> functions_;
  std::string problem_;
};

/// NVIDIA's GPUs as the operating system shows them. It needs no library of the driver.
struct NvidiaSystem {
  bool has_device = false;            // there is /dev/nvidia0
  std::optional<std::string> driver;  // the version of the kernel's driver, "550.54.14"; may be empty
};
/// `root` is the directory that contains proc and dev.
NvidiaSystem nvidia_system(const std::filesystem::path& root = "/");

}  // namespace zoo
