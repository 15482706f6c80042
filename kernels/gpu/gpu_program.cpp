#include "kernels/gpu/gpu_program.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "base/cache_root.h"
#include "base/dynamic_function.h"
#include "base/error.h"
#include "kernels/gpu/run_time_compiler.h"

namespace zoo::embedded {
extern const char activations_cuda[];
extern const char device_functions_cuda[];
extern const char dropout_numbers_cuda[];
extern const char numbers_cuda[];
}  // namespace zoo::embedded

namespace zoo {
namespace {

// CUDA's own types: CUresult is an enumeration, CUdevice a number, the others pointers.
using CuResult = int;
using CuDevice = int;
using CuHandle = void*;
constexpr CuResult kSuccess = 0;
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CUdevice_attribute

template <class Function>
void require_function(void* library, const char* name, Function& function) {
  if (!find_function(library, name, function))
    throw SystemError(fmt::format("the driver of the GPU has no {}", name));
}

/// FNV-1a, which is enough to tell the versions of one text.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

std::optional<std::string> read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// A cache only saves time: what cannot be written is not. Several processes may write the same file.
void write(const std::filesystem::path& path, const std::string& code) {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  auto own = path;
  own += fmt::format(".{}", ::getpid());
  if (!(std::ofstream(own, std::ios::binary) << code)) {
    std::filesystem::remove(own, ignored);
    return;
  }
  std::filesystem::rename(own, path, ignored);
  if (ignored) std::filesystem::remove(own, ignored);
}

}  // namespace

/// The functions of the driver that start kernels. LibTorch has loaded it, and made a context for the device.
struct GpuProgram::Driver {
  CuResult (*error_string)(CuResult error, const char** text) = nullptr;
  CuResult (*attribute)(int* value, int attribute, CuDevice device) = nullptr;
  CuResult (*current_device)(CuDevice* device) = nullptr;
  CuResult (*load)(CuHandle* module, const void* code) = nullptr;
  CuResult (*unload)(CuHandle module) = nullptr;
  CuResult (*function)(CuHandle* function, CuHandle module, const char* name) = nullptr;
  CuResult (*launch)(CuHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                     unsigned block_y, unsigned block_z, unsigned shared_bytes, CuHandle stream,
                     void** arguments, void** extra) = nullptr;

  Driver() {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
    if (library == nullptr) throw SystemError("the driver of the GPU, libcuda.so.1, cannot be loaded");
    require_function(library, "cuGetErrorString", error_string);
    require_function(library, "cuDeviceGetAttribute", attribute);
    require_function(library, "cuCtxGetDevice", current_device);
    require_function(library, "cuModuleLoadData", load);
    require_function(library, "cuModuleUnload", unload);
    require_function(library, "cuModuleGetFunction", function);
    require_function(library, "cuLaunchKernel", launch);
  }
  static const Driver& one() {
    static const Driver driver;
    return driver;
  }
  void check(CuResult result, std::string_view what) const {
    if (result == kSuccess) return;
    const char* text = nullptr;
    error_string(result, &text);
    throw SystemError(
        fmt::format("the GPU cannot {}: {} ({})", what, text != nullptr ? text : "unknown error", result));
  }
  /// Of the device of the current context.
  GpuArchitecture architecture() const {
    CuDevice device = 0;
    check(current_device(&device), "be asked for its kind");
    GpuArchitecture result;
    check(attribute(&result.major, kCapabilityMajor, device), "be asked for its kind");
    check(attribute(&result.minor, kCapabilityMinor, device), "be asked for its kind");
    return result;
  }
};

struct GpuProgram::Module {
  CuHandle handle = nullptr;
  mutable std::mutex mutex;
  mutable std::map<std::string, CuHandle> functions;
};

std::string cached_code_name(const std::string& name, const std::string& text,
                             const std::string& architecture, const std::string& compiler_version) {
  return fmt::format("{}-{}-{}-{:016x}.cubin", name, architecture, compiler_version, hash_of(text));
}

std::string whole_text(const std::string& text) {
  return std::string(embedded::device_functions_cuda) + embedded::numbers_cuda + embedded::activations_cuda +
         embedded::dropout_numbers_cuda + text;
}

GpuProgram::GpuProgram(const std::string& name, const std::string& text, c10::Device device)
    : device_(device), module_(std::make_unique<Module>()) {
  const c10::DeviceGuard guard(device);
  const auto& driver = Driver::one();
  const auto architecture = driver.architecture();
  const auto compiler = RunTimeCompiler::load();
  if (!compiler)
    throw SystemError("NVIDIA's compiler, libnvrtc, which LibTorch for CUDA brings along, cannot be loaded");
  const auto whole = whole_text(text);
  const auto root = cache_root();
  const auto path = root / "gpu" / cached_code_name(name, whole, architecture.text(), compiler->version());
  if (!root.empty()) {
    const auto code = read(path);
    if (code && driver.load(&module_->handle, code->data()) == kSuccess) return;
  }
  const auto code = compiler->compile(name, whole, architecture);
  driver.check(driver.load(&module_->handle, code.data()), fmt::format("load {}", name));
  if (!root.empty()) write(path, code);
}

/// At the end of a process the driver may be gone already; its memory goes with the process.
GpuProgram::~GpuProgram() = default;

void GpuProgram::launch(const std::string& function, const LaunchSize& size,
                        std::vector<void*> arguments) const {
  if (size.blocks == 0) return;
  const auto& driver = Driver::one();
  const c10::DeviceGuard guard(device_);
  CuHandle handle = nullptr;
  {
    const std::scoped_lock lock(module_->mutex);
    auto& known = module_->functions[function];
    if (known == nullptr)
      driver.check(driver.function(&known, module_->handle, function.c_str()),
                   fmt::format("find {}", function));
    handle = known;
  }
  const auto stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_).native_handle();
  driver.check(driver.launch(handle, static_cast<unsigned>(size.blocks), 1, 1,
                             static_cast<unsigned>(size.threads), 1, 1, 0, stream, arguments.data(), nullptr),
               fmt::format("start {}", function));
}

}  // namespace zoo
