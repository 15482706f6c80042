#pragma once
// The machine that a measurement ran on, and its memory.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace zoo {

struct MachineInfo {
  std::string cpu;           // name; "unknown" if the system does not report it
  int64_t cores = 1;         // usable by this process
  int64_t memory_bytes = 0;  // physical; 0 if the system does not report it
  std::string system = {};   // "Linux 6.1.0 x86_64"
  /// "Debian GNU/Linux 12 (bookworm)"; empty if the system does not report it.
  std::string distribution = {};
};
MachineInfo machine_info();

/// How many cores' time the process's control groups (containers, batch systems) let it use, such as 1.5.
/// nullopt if they set no limit. Threads beyond it wait for each other. `root` as below.
std::optional<double> core_limit(const std::filesystem::path& root = "/");

/// Bytes that this process can still allocate: the memory that the machine has free or can free at once,
/// within the limits of the process's control groups (containers, batch systems). nullopt if the system does
/// not report it. `root` is the directory that contains proc and sys.
std::optional<int64_t> available_memory_bytes(const std::filesystem::path& root = "/");

/// Peak resident memory of this process, as counted by the operating system; 0 if it is not known.
int64_t peak_resident_bytes();

}  // namespace zoo
