#include "apps/doctor/show_report.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;

std::string row(std::string_view name, const std::string& value) {
  return fmt::format("{:<15} {}\n", name, printable(value));
}

std::string gigabytes(std::optional<int64_t> bytes) {
  return bytes ? fmt::format("{:.1f} GB", static_cast<double>(*bytes) / kGiga) : "unknown";
}

/// "1 thing", "2 things"
std::string counted(int64_t n, std::string_view thing) {
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s");
}

std::string program_text(const VersionFacts& versions) {
  auto text = versions.program;
  if (!versions.commit.empty()) text += fmt::format(", commit {}", versions.commit);
  text += fmt::format(", built by {}", versions.compiler);
  return versions.build_type.empty() ? text : fmt::format("{} ({})", text, versions.build_type);
}

std::string libtorch_text(const VersionFacts& versions) {
  auto text = versions.libtorch;
  if (versions.libtorch != versions.libtorch_at_build)
    text += fmt::format(" (the program was built with {})", versions.libtorch_at_build);
  if (!versions.libtorch_cuda) return text + ", no CUDA";
  return text + fmt::format(", CUDA {}, {} NCCL", versions.libtorch_cuda->text(),
                            versions.has_nccl ? "with" : "without");
}

std::string system_text(const MachineInfo& machine) {
  return machine.distribution.empty() ? machine.system
                                      : fmt::format("{}, {}", machine.distribution, machine.system);
}

std::string processor_text(const MachineInfo& machine, const ProcessorFacts& processor) {
  auto text = fmt::format("{}, {}", machine.cpu, counted(machine.cores, "core"));
  if (processor.core_limit) text += fmt::format(" limited to the time of {:.1f}", *processor.core_limit);
  return fmt::format("{}, {}", text, counted(processor.threads, "thread"));
}

std::string vectors_text(const ProcessorFacts& processor) {
  return fmt::format("LibTorch {}, loops of this program {}, {}", processor.libtorch_vectors,
                     processor.product_vectors,
                     !processor.has_bf16 ? "no units for bf16"
                     : processor.has_amx ? "bf16 by AMX"
                                         : "bf16 by AVX-512");
}

std::string memory_text(const MachineReport& report) {
  return fmt::format("{}, {} available, read at {:.1f} GB/s by {}", gigabytes(report.machine.memory_bytes),
                     gigabytes(report.memory.available_bytes), report.memory.bytes_per_second / kGiga,
                     counted(report.processor.threads, "thread"));
}

std::string driver_text(const GpuFacts& gpu) {
  if (!gpu.driver && !gpu.system.driver) return gpu.system.has_device ? "none, but /dev/nvidia0" : "none";
  std::string text = gpu.system.driver ? *gpu.system.driver : "";
  if (text.empty()) text = "of unknown version";
  if (!gpu.driver) return text + ", without libcuda.so.1";
  text += fmt::format(", for CUDA up to {}", gpu.driver->cuda.text());
  return gpu.driver->problem.empty() ? text : fmt::format("{}: {}", text, gpu.driver->problem);
}

std::string gpu_rows(const GpuFacts& gpu) {
  auto text = row(
      "GPUs",
      fmt::format("LibTorch sees {}{}", gpu.seen_by_libtorch,
                  gpu.visible_devices ? fmt::format(", CUDA_VISIBLE_DEVICES={}", *gpu.visible_devices) : ""));
  text += row("NVIDIA driver", driver_text(gpu));
  if (!gpu.driver) return text;
  constexpr size_t most = 8;
  const auto& gpus = gpu.driver->gpus;
  for (size_t i = 0; i < std::min(gpus.size(), most); ++i) {
    text += row(fmt::format("  GPU {}", i),
                fmt::format("{}, {}, compute capability {}.{}", gpus[i].name, gigabytes(gpus[i].memory_bytes),
                            gpus[i].major, gpus[i].minor));
  }
  if (gpus.size() > most) text += row("", fmt::format("and {} more", gpus.size() - most));
  return text;
}

std::string arithmetic_text(const ArithmeticFacts& check) {
  if (!check.failure.empty()) return "fails";
  if (check.losses.empty()) return "nothing was computed";
  return fmt::format("{}: loss {:.4f} to {:.4f}; writes '{}'; {:.1f} s",
                     counted(std::ssize(check.losses), "step"), check.losses.front(), check.losses.back(),
                     check.text, check.seconds);
}

std::string folder_text(const FolderFacts& folder) {
  if (folder.path.empty()) return "none";
  const std::string_view state = !folder.can_write ? ", cannot be written"
                                 : folder.exists   ? ""
                                                   : ", does not exist";
  return fmt::format("{}{}, {} free", folder.path, state, gigabytes(folder.free_bytes));
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json or_null(const std::optional<CudaVersion>& version) { return version ? Json(version->text()) : Json(); }

Json as_json(const FolderFacts& folder) {
  if (folder.path.empty()) return {};
  return {{"path", folder.path},
          {"exists", folder.exists},
          {"can_write", folder.can_write},
          {"free_bytes", or_null(folder.free_bytes)}};
}

Json as_json(const GpuFacts& gpu) {
  Json document{{"seen_by_libtorch", gpu.seen_by_libtorch},
                {"libtorch_warning", gpu.libtorch_warning.empty() ? Json() : Json(gpu.libtorch_warning)},
                {"cuda_visible_devices", or_null(gpu.visible_devices)},
                {"has_device_file", gpu.system.has_device},
                {"kernel_driver", or_null(gpu.system.driver)},
                {"driver", nullptr}};
  if (!gpu.driver) return document;
  auto gpus = Json::array();
  for (const auto& one : gpu.driver->gpus) {
    gpus.push_back({{"name", one.name},
                    {"memory_bytes", one.memory_bytes},
                    {"compute_capability", fmt::format("{}.{}", one.major, one.minor)}});
  }
  document["driver"] = {{"cuda", gpu.driver->cuda.text()},
                        {"problem", gpu.driver->problem.empty() ? Json() : Json(gpu.driver->problem)},
                        {"gpus", std::move(gpus)}};
  return document;
}

Json as_json(const ArithmeticFacts& check) {
  return {{"device", check.device},   {"losses", check.losses},
          {"text", check.text},       {"text_without_cache", check.text_without_cache},
          {"seconds", check.seconds}, {"failure", check.failure.empty() ? Json() : Json(check.failure)}};
}

Json as_json(const VersionFacts& versions) {
  return {{"transformer_zoo", versions.program},
          {"commit", versions.commit.empty() ? Json() : Json(versions.commit)},
          {"libtorch", versions.libtorch},
          {"libtorch_at_build", versions.libtorch_at_build},
          {"libtorch_cuda", or_null(versions.libtorch_cuda)},
          {"nccl", versions.has_nccl},
          {"compiler", versions.compiler},
          {"build_type", versions.build_type.empty() ? Json() : Json(versions.build_type)}};
}

}  // namespace

std::string to_text(const MachineReport& report, const Findings& findings) {
  const auto& installation = report.installation;
  auto text = row("transformer-zoo", program_text(report.versions)) +
              row("LibTorch", libtorch_text(report.versions)) + row("system", system_text(report.machine)) +
              row("processor", processor_text(report.machine, report.processor)) +
              row("  vectors", vectors_text(report.processor)) + row("memory", memory_text(report)) +
              gpu_rows(report.gpu);
  for (const auto& check : report.arithmetic) text += row("check on " + check.device, arithmetic_text(check));
  text += row("configurations", installation.configurations.empty() ? "none" : installation.configurations) +
          row("working folder", folder_text(installation.working)) +
          row("data", folder_text(installation.data)) + row("cache", folder_text(installation.cache)) + "\n";
  for (const auto& line : findings.problems) text += fmt::format("problem: {}\n", line);
  for (const auto& line : findings.remarks) text += fmt::format("remark: {}\n", line);
  if (findings.problems.empty()) text += "Everything works.\n";
  return text;
}

nlohmann::ordered_json to_json(const MachineReport& report, const Findings& findings) {
  const auto& [versions, machine, processor, memory, gpu, arithmetic, installation] = report;
  auto checks = Json::array();
  for (const auto& check : arithmetic) checks.push_back(as_json(check));
  return {
      {"versions", as_json(versions)},
      {"system", {{"distribution", machine.distribution}, {"kernel", machine.system}}},
      {"processor",
       {{"name", machine.cpu},
        {"cores", machine.cores},
        {"core_limit", or_null(processor.core_limit)},
        {"threads", processor.threads},
        {"libtorch_vectors", processor.libtorch_vectors},
        {"product_vectors", processor.product_vectors},
        {"bf16", processor.has_bf16},
        {"amx", processor.has_amx}}},
      {"memory",
       {{"bytes", machine.memory_bytes},
        {"available_bytes", or_null(memory.available_bytes)},
        {"read_bytes_per_second", memory.bytes_per_second}}},
      {"gpu", as_json(gpu)},
      {"arithmetic", std::move(checks)},
      {"folders",
       {{"configurations", installation.configurations.empty() ? Json() : Json(installation.configurations)},
        {"working", as_json(installation.working)},
        {"data", as_json(installation.data)},
        {"cache", as_json(installation.cache)}}},
      {"problems", findings.problems},
      {"remarks", findings.remarks}};
}

}  // namespace zoo
