#pragma once
// What zoo doctor could see. docs/installation.md shows some of these machines.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "apps/doctor/machine_report.h"

namespace zoo::testing {

inline ArithmeticFacts right_arithmetic(const std::string& device) {
  constexpr double first = 5.5842, last = 0.0638;
  std::vector<double> losses(60);
  for (size_t i = 0; i < losses.size(); ++i)
    losses[i] =
        first * std::pow(last / first, static_cast<double>(i) / static_cast<double>(losses.size() - 1));
  return {.device = device,
          .losses = losses,
          .text = " has lions, owls and whales; ",
          .text_without_cache = " has lions, owls and whales; ",
          .seconds = device == "cpu" ? 0.8 : 1.9};
}

/// Two cores without a GPU.
inline MachineReport processor_machine() {
  const auto folder = [](std::string path) {
    return FolderFacts{
        .path = std::move(path), .exists = true, .can_write = true, .free_bytes = 73'000'000'000};
  };
  return {.versions = {.program = "0.1.0",
                       .commit = "dfd8199ed37b",
                       .libtorch_at_build = "2.13.0",
                       .libtorch = "2.13.0",
                       .libtorch_cuda = {},
                       .has_nccl = false,
                       .compiler = "GNU 12.2.0",
                       .build_type = "Release"},
          .machine = {.cpu = "AMD EPYC",
                      .cores = 2,
                      .memory_bytes = 25'276'063'744,
                      .system = "Linux 6.18.44 x86_64",
                      .distribution = "Debian GNU/Linux 12 (bookworm)"},
          .processor = {.core_limit = {},
                        .threads = 2,
                        .libtorch_vectors = "AVX2",
                        .product_vectors = "avx2",
                        .has_bf16 = false,
                        .has_amx = false},
          .memory = {.available_bytes = 21'605'056'512, .bytes_per_second = 13.9e9},
          .gpu = {},
          .arithmetic = {right_arithmetic("cpu")},
          .installation = {
              .configurations = "/home/ada/transformer-zoo/build/release/share/transformer-zoo/configs",
              .missing_configuration = {},
              .working = folder("/home/ada/transformer-zoo"),
              .data = folder("datasets"),
              .cache = folder("/home/ada/.cache/transformer-zoo")}};
}

/// One GPU, which LibTorch uses.
inline MachineReport gpu_machine() {
  auto report = processor_machine();
  report.versions.libtorch_cuda = CudaVersion{13, 0};
  report.versions.has_nccl = true;
  report.machine.cpu = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz";
  report.machine.cores = 16;
  report.machine.memory_bytes = 135'000'000'000;
  report.processor.threads = 16;
  report.processor.libtorch_vectors = "AVX512";
  report.processor.product_vectors = "avx512";
  report.processor.has_bf16 = true;
  report.processor.has_amx = true;
  report.memory = {.available_bytes = 120'000'000'000, .bytes_per_second = 96.2e9};
  report.gpu.seen_by_libtorch = 1;
  report.gpu.system = {.has_device = true, .driver = "580.65.06"};
  report.gpu.driver = DriverFacts{
      .cuda = {13, 0},
      .problem = {},
      .gpus = {{.name = "NVIDIA H100 80GB HBM3", .memory_bytes = 84'942'979'072, .major = 9, .minor = 0}}};
  report.arithmetic.push_back(right_arithmetic("cuda:0"));
  return report;
}

/// The same with a LibTorch without CUDA.
inline MachineReport machine_without_cuda() {
  auto report = gpu_machine();
  report.versions.libtorch_cuda = {};
  report.versions.has_nccl = false;
  report.gpu.seen_by_libtorch = 0;
  report.arithmetic.pop_back();
  report.installation.data.exists = false;
  return report;
}

/// The same with a driver that is older than the CUDA of LibTorch.
inline MachineReport machine_with_old_driver() {
  auto report = gpu_machine();
  report.gpu.seen_by_libtorch = 0;
  report.gpu.system.driver = "535.104.05";
  report.gpu.driver->cuda = {12, 2};
  report.arithmetic.pop_back();
  return report;
}

}  // namespace zoo::testing
