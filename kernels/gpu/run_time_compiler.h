#pragma once
// NVIDIA's compiler for texts in CUDA C++ (NVRTC), which every LibTorch for CUDA brings along. It is loaded
// when it is first needed; programs need neither its headers nor a CUDA toolkit when they are built.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The architecture of a card, such as 9.0.
struct GpuArchitecture {
  int major = 0, minor = 0;
  std::string text() const;  // "sm_90"
};

class RunTimeCompiler {
 public:
  /// `libraries`: what to try in order; by default the names of NVRTC's versions, and the packages beside
  /// LibTorch. Nothing if none can be loaded.
  static std::optional<RunTimeCompiler> load(const std::vector<std::string>& libraries = default_libraries());
  static std::vector<std::string> default_libraries();

  /// "13.0", for the name of a cached result.
  const std::string& version() const { return version_; }
  /// The machine code of a text. Throws SystemError with the compiler's first message.
  std::string compile(std::string_view name, std::string_view text,
                      const GpuArchitecture& architecture) const;

 private:
  struct Functions;
  RunTimeCompiler() = default;

  std::shared_ptr<void> library_;
  std::shared_ptr<const Functions> functions_;
  std::string version_;
};

}  // namespace zoo
