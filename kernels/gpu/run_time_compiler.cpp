#include "kernels/gpu/run_time_compiler.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <system_error>

#include <ATen/Context.h>
#include <fmt/format.h>

#include "base/dynamic_function.h"
#include "base/error.h"

namespace zoo {
namespace {

// NVRTC's own types: nvrtcResult is an enumeration, nvrtcProgram a pointer.
using Result = int;
using Program = void*;
constexpr Result kCompiled = 0;

/// The directory of LibTorch's libraries.
std::filesystem::path libtorch_directory() {
  Dl_info info{};
  const auto* const function = reinterpret_cast<const void*>(&at::globalContext);  // any one will do
  const bool found = ::dladdr(function, &info) != 0 && info.dli_fname != nullptr;
  return found ? std::filesystem::path(info.dli_fname).parent_path() : std::filesystem::path();
}

}  // namespace

struct RunTimeCompiler::Functions {
  Result (*version)(int* major, int* minor) = nullptr;
  const char* (*error_string)(Result result) = nullptr;
  Result (*create)(Program* program, const char* text, const char* name, int n_headers,
                   const char* const* headers, const char* const* header_names) = nullptr;
  Result (*destroy)(Program* program) = nullptr;
  Result (*compile)(Program program, int n_options, const char* const* options) = nullptr;
  Result (*log_size)(Program program, size_t* size) = nullptr;
  Result (*log)(Program program, char* log) = nullptr;
  Result (*code_size)(Program program, size_t* size) = nullptr;
  Result (*code)(Program program, char* code) = nullptr;
};

std::string GpuArchitecture::text() const { return fmt::format("sm_{}{}", major, minor); }

std::vector<std::string> RunTimeCompiler::default_libraries() {
  std::vector<std::string> libraries = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  // PyPI's packages: torch/lib and nvidia/…/lib are neighbours.
  const auto packages = libtorch_directory().parent_path().parent_path() / "nvidia";
  std::error_code ignored;
  for (const char* const folder : {"cu13/lib", "cuda_nvrtc/lib"}) {
    for (const auto& entry : std::filesystem::directory_iterator(packages / folder, ignored)) {
      const auto name = entry.path().filename().string();
      if (name.starts_with("libnvrtc.so")) libraries.push_back(entry.path().string());
    }
  }
  return libraries;
}

std::optional<RunTimeCompiler> RunTimeCompiler::load(const std::vector<std::string>& libraries) {
  RunTimeCompiler compiler;
  for (const auto& library : libraries) {
    void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    compiler.library_ = std::shared_ptr<void>(handle, [](void* loaded) { ::dlclose(loaded); });
    Functions found;
    const bool complete = find_function(handle, "nvrtcVersion", found.version) &&
                          find_function(handle, "nvrtcGetErrorString", found.error_string) &&
                          find_function(handle, "nvrtcCreateProgram", found.create) &&
                          find_function(handle, "nvrtcDestroyProgram", found.destroy) &&
                          find_function(handle, "nvrtcCompileProgram", found.compile) &&
                          find_function(handle, "nvrtcGetProgramLogSize", found.log_size) &&
                          find_function(handle, "nvrtcGetProgramLog", found.log) &&
                          find_function(handle, "nvrtcGetCUBINSize", found.code_size) &&
                          find_function(handle, "nvrtcGetCUBIN", found.code);
    int major = 0, minor = 0;
    if (!complete || found.version(&major, &minor) != kCompiled) continue;
    compiler.functions_ = std::make_shared<const Functions>(found);
    compiler.version_ = fmt::format("{}.{}", major, minor);
    return compiler;
  }
  return std::nullopt;
}

std::string RunTimeCompiler::compile(std::string_view name, std::string_view text,
                                     const GpuArchitecture& architecture) const {
  const auto& call = *functions_;
  Program program = nullptr;
  const auto destroy = [&call](Program* made) { call.destroy(made); };
  const std::unique_ptr<Program, decltype(destroy)> owner(&program, destroy);
  const auto check = [&](Result result, std::string_view what) {
    if (result == kCompiled) return;
    throw SystemError(fmt::format("NVIDIA's compiler cannot {} {} for {}: {}", what, name,
                                  architecture.text(), call.error_string(result)));
  };
  check(call.create(&program, std::string(text).c_str(), std::string(name).c_str(), 0, nullptr, nullptr),
        "read");
  const auto target = "--gpu-architecture=" + architecture.text();
  const std::array options = {target.c_str(), "--std=c++17"};
  if (call.compile(program, static_cast<int>(options.size()), options.data()) != kCompiled) {
    size_t size = 0;
    std::string log;
    if (call.log_size(program, &size) == kCompiled && size > 0) {
      log.resize(size);
      if (call.log(program, log.data()) != kCompiled) log.clear();
    }
    throw SystemError(fmt::format("NVIDIA's compiler refuses {} for {}: {}", name, architecture.text(),
                                  log.substr(0, log.find('\n'))));
  }
  size_t size = 0;
  check(call.code_size(program, &size), "translate");
  std::string code(size, '\0');
  check(call.code(program, code.data()), "translate");
  return code;
}

}  // namespace zoo
