#include "apps/doctor/gather_report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include "apps/doctor/arithmetic.h"
#include "base/device.h"
#include "base/error.h"
#include "base/memory_rate.h"
#include "base/named_enum.h"
#include "base/version.h"
#include "comparison/source_commit.h"
#include "io/config/config_path.h"
#include "io/config/find_config.h"
#include "kernels/isa/paths.h"
#include "models/precision.h"
#include "parallel/backends.h"
#include "tokenizers/token_cache.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The version of the LibTorch that is loaded, which need not be the one that this program was built with.
std::string loaded_libtorch() {
  const auto number = aoti_torch_abi_version();  // one byte each for major, minor and patch, from the highest
  const auto byte = [&](int place) { return number >> (8 * place) & 0xFF; };
  return fmt::format("{}.{}.{}", byte(7), byte(6), byte(5));
}

std::optional<CudaVersion> libtorch_cuda() {
  const auto& hooks = at::detail::getCUDAHooks();
  if (!hooks.hasCUDART()) return std::nullopt;
  return CudaVersion::of(hooks.versionCUDART());
}

VersionFacts versions() {
  return {.program = std::string(version()),
          .commit = std::string(source_commit()),
          .libtorch_at_build =
              fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH),
          .libtorch = loaded_libtorch(),
          .libtorch_cuda = libtorch_cuda(),
          .has_nccl = has_nccl(),
          .compiler = std::string(compiler()),
          .build_type = std::string(build_type())};
}

bool has_amx() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  return __builtin_cpu_supports("amx-bf16");
#else
  return false;
#endif
}

ProcessorFacts processor() {
  constexpr int64_t any_wide_model = 4096;
  return {.core_limit = core_limit(),
          .threads = at::get_num_threads(),
          .libtorch_vectors = at::get_cpu_capability(),
          .product_vectors = std::string(name_of(best_path())),
          .has_bf16 = resolve(Precision::automatic, c10::kCPU, any_wide_model) == Precision::bf16,
          .has_amx = has_amx()};
}

MemoryFacts memory() {
  MemoryFacts facts{.available_bytes = available_memory_bytes()};
  constexpr int64_t usual = 256'000'000, least = 1'000'000;
  const auto bytes = std::clamp(facts.available_bytes.value_or(usual) / 8, least, usual);
  facts.bytes_per_second = memory_read_rate({.bytes = bytes, .rounds = 10, .seconds = 0.2});
  return facts;
}

/// Keeps the first warning of LibTorch, which would write it on stderr.
class KeptWarning final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (text_.empty()) text_ = warning.msg().substr(0, warning.msg().find('\n'));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

GpuFacts gpus() {
  GpuFacts facts;
  facts.system = nvidia_system();
  {
    KeptWarning warning;
    const c10::WarningUtils::WarningHandlerGuard guard(&warning);
    facts.seen_by_libtorch = torch::cuda::device_count();
    facts.libtorch_warning = warning.text();
  }
  if (const auto driver = CudaDriver::load()) {
    facts.driver =
        DriverFacts{.cuda = driver->version(), .problem = driver->problem(), .gpus = driver->gpus()};
  }
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible_devices = visible;
  return facts;
}

FolderFacts folder(const fs::path& path) {
  if (path.empty()) return {};
  FolderFacts facts{.path = path.string(), .exists = false, .can_write = false, .free_bytes = {}};
  std::error_code error;
  facts.exists = fs::is_directory(path, error);
  auto place = fs::absolute(path, error).lexically_normal();  // becomes the nearest place that is there
  while (place.has_relative_path() && !fs::exists(place, error)) place = place.parent_path();
  facts.can_write = fs::is_directory(place, error) && ::access(place.c_str(), W_OK | X_OK) == 0;
  const auto space = fs::space(place, error);
  if (!error) facts.free_bytes = static_cast<int64_t>(space.available);
  return facts;
}

InstallationFacts installation() {
  std::error_code ignored;
  InstallationFacts facts{.configurations = shipped_configs().value_or("").string(),
                          .missing_configuration = {},
                          .working = folder(fs::current_path(ignored)),
                          .data = folder(data_root()),
                          .cache = folder(cache_root())};
  try {
    find_config("shakespeare-char-cpu");
  } catch (const Error& error) {
    facts.missing_configuration = error.what();
  }
  return facts;
}

}  // namespace

MachineReport gather_report(std::string_view device) {
  auto gpu = gpus();  // the first that asks LibTorch for GPUs, which may warn
  const auto checked = parse_device(device);
  MachineReport report{.versions = versions(),
                       .machine = machine_info(),
                       .processor = processor(),
                       .memory = memory(),
                       .gpu = std::move(gpu),
                       .arithmetic = {},
                       .installation = installation()};
  report.arithmetic.push_back(check_arithmetic(c10::kCPU));
  if (checked.is_cpu()) return report;
  // The user means one GPU, or all of them.
  const bool is_one = device.starts_with("cuda:");
  for (int64_t i = 0; i < (is_one ? 1 : report.gpu.seen_by_libtorch); ++i)
    report.arithmetic.push_back(
        check_arithmetic(is_one ? checked : c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(i))));
  return report;
}

}  // namespace zoo
