#pragma once
// What is known of this machine and this program. gather_report() fills it; judge() says what is wrong with
// it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/cuda_driver.h"
#include "base/machine.h"

namespace zoo {

struct VersionFacts {
  std::string program, commit;               // commit: empty if it is not known
  std::string libtorch_at_build;             // "2.13.0"
  std::string libtorch;                      // that runs now
  std::optional<CudaVersion> libtorch_cuda;  // that LibTorch was built for; nothing: without CUDA
  bool has_nccl = false;                     // see parallel/backends.h
  std::string compiler, build_type;
};

struct ProcessorFacts {
  std::optional<double> core_limit;  // of control groups, see base/machine.h
  int64_t threads = 1;               // of LibTorch
  std::string libtorch_vectors;      // "AVX2", "AVX512", "DEFAULT"
  std::string product_vectors;       // of products with packed weights: "portable", "avx2", "avx512"
  bool has_bf16 = false;             // whether there are units for bf16, which training uses then
  bool has_amx = false;              // whether these are Intel's AMX
};

struct MemoryFacts {
  std::optional<int64_t> available_bytes;
  double bytes_per_second = 0;  // read by all threads
};

struct DriverFacts {
  CudaVersion cuda;          // the newest that it supports
  std::string problem = {};  // see CudaDriver::problem()
  std::vector<GpuInfo> gpus = {};
};

struct GpuFacts {
  int64_t seen_by_libtorch = 0;
  std::string libtorch_warning = {};  // what LibTorch said when it looked for them; usually empty
  NvidiaSystem system = {};
  std::optional<DriverFacts> driver = {};           // nothing: there is no library of the driver
  std::optional<std::string> visible_devices = {};  // $CUDA_VISIBLE_DEVICES
};

/// A tiny model that was trained and has written a text.
struct ArithmeticFacts {
  std::string device;          // "cpu", "cuda:0"
  std::vector<double> losses;  // of each step
  std::string text;            // what it has written with its cache, always the likeliest token
  /// The same without a cache: every token is read again for each token that is written.
  std::string text_without_cache;
  double seconds = 0;
  std::string failure = {};  // why there are no results, in one line; usually empty
};

struct FolderFacts {
  std::string path;  // empty: none
  bool exists = false;
  bool can_write = false;             // in it, or where it would be made
  std::optional<int64_t> free_bytes;  // on its disk
};

struct InstallationFacts {
  std::string configurations;         // the folder of those that come with the program; empty: none
  std::string missing_configuration;  // why `zoo train shakespeare-char-cpu` would not find its own, or empty
  FolderFacts working, data, cache;
};

struct MachineReport {
  VersionFacts versions;
  MachineInfo machine;
  ProcessorFacts processor;
  MemoryFacts memory;
  GpuFacts gpu;
  std::vector<ArithmeticFacts> arithmetic;  // of the processor, then of the GPUs
  InstallationFacts installation;
};

}  // namespace zoo
