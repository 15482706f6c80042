#pragma once
// The machine that numbers were measured on.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace zoo {

struct MachineInfo {
  std::string cpu;           // its name; "unknown" where the system does not tell
  int64_t cores = 1;         // that this process may use
  int64_t memory_bytes = 0;  // physical; 0 where the system does not tell
  std::string system = {};   // "Linux 6.1.0 x86_64"
};
MachineInfo machine_info();

/// Bytes that this process could still take: what the machine has free or could free at once, within the
/// limits of the control groups that the process is in (containers, batch systems). Nothing where the system
/// does not tell. `root` is where /proc and /sys are.
std::optional<int64_t> available_memory_bytes(const std::filesystem::path& root = "/");

/// The most memory that this process ever held, as the operating system counts it; 0 where it does not tell.
int64_t peak_resident_bytes();

}  // namespace zoo
