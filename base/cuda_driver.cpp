#include "base/cuda_driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "base/dynamic_function.h"

namespace zoo {
namespace {

// CUDA's own types: CUresult is an enumeration, CUdevice a number.
using CuResult = int;
using CuDevice = int;
constexpr CuResult kSuccess = 0;
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CUdevice_attribute

}  // namespace

struct CudaDriver::Functions {
  CuResult (*init)(unsigned flags) = nullptr;
  CuResult (*driver_version)(int* version) = nullptr;
  CuResult (*error_string)(CuResult error, const char** text) = nullptr;
  CuResult (*device_count)(int* count) = nullptr;
  CuResult (*device)(CuDevice* device, int ordinal) = nullptr;
  CuResult (*device_name)(char* name, int size, CuDevice device) = nullptr;
  CuResult (*device_memory)(size_t* bytes, CuDevice device) = nullptr;
  CuResult (*device_attribute)(int* value, int attribute, CuDevice device) = nullptr;
};

CudaVersion CudaVersion::of(int64_t number) {
  return {.major = static_cast<int>(number / 1000), .minor = static_cast<int>(number % 1000 / 10)};
}

std::string CudaVersion::text() const { return fmt::format("{}.{}", major, minor); }

std::optional<CudaDriver> CudaDriver::load(const std::string& library) {
  // The driver may have threads, so its code stays in memory.
  CudaDriver driver;
  driver.library_ =
      std::shared_ptr<void>(::dlopen(library.c_str(), RTLD_NOW | RTLD_NODELETE), [](void* handle) {
        if (handle != nullptr) ::dlclose(handle);
      });
  void* const handle = driver.library_.get();
  if (handle == nullptr) return std::nullopt;
  Functions found;
  const bool complete = find_function(handle, "cuInit", found.init) &&
                        find_function(handle, "cuDriverGetVersion", found.driver_version) &&
                        find_function(handle, "cuGetErrorString", found.error_string) &&
                        find_function(handle, "cuDeviceGetCount", found.device_count) &&
                        find_function(handle, "cuDeviceGet", found.device) &&
                        find_function(handle, "cuDeviceGetName", found.device_name) &&
                        find_function(handle, "cuDeviceTotalMem_v2", found.device_memory) &&
                        find_function(handle, "cuDeviceGetAttribute", found.device_attribute);
  if (!complete) return std::nullopt;
  driver.functions_ = std::make_shared<const Functions>(found);
  if (const CuResult result = found.init(0); result != kSuccess) driver.problem_ = driver.text_of(result);
  return driver;
}

std::string CudaDriver::text_of(int error) const {
  const char* text = nullptr;
  const bool is_known = functions_->error_string(error, &text) == kSuccess && text != nullptr;
  return fmt::format("{} ({})", is_known ? text : "unknown error", error);
}

CudaVersion CudaDriver::version() const {
  int number = 0;
  return functions_->driver_version(&number) == kSuccess ? CudaVersion::of(number) : CudaVersion{};
}

std::vector<GpuInfo> CudaDriver::gpus() const {
  std::vector<GpuInfo> gpus;
  int count = 0;
  if (!problem_.empty() || functions_->device_count(&count) != kSuccess) return gpus;
  for (int i = 0; i < count; ++i) {
    CuDevice device = 0;
    if (functions_->device(&device, i) != kSuccess) continue;
    GpuInfo gpu;
    std::array<char, 256> name{};
    if (functions_->device_name(name.data(), static_cast<int>(name.size()) - 1, device) == kSuccess)
      gpu.name = name.data();
    size_t bytes = 0;
    if (functions_->device_memory(&bytes, device) == kSuccess) gpu.memory_bytes = static_cast<int64_t>(bytes);
    functions_->device_attribute(&gpu.major, kCapabilityMajor, device);
    functions_->device_attribute(&gpu.minor, kCapabilityMinor, device);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

NvidiaSystem nvidia_system(const std::filesystem::path& root) {
  std::error_code ignored;
  NvidiaSystem system{.has_device = std::filesystem::exists(root / "dev/nvidia0", ignored), .driver = {}};
  std::ifstream file(root / "proc/driver/nvidia/version");
  if (!file) return system;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 …"
  system.driver.emplace();
  const auto is_version = [](std::string_view word) {
    return word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos;
  };
  for (std::string word; file >> word;) {
    if (!is_version(word)) continue;
    system.driver = word;
    break;
  }
  return system;
}

}  // namespace zoo
