#pragma once
// The machine that numbers were measured on.

#include <cstdint>
#include <string>

namespace zoo {

struct MachineInfo {
  std::string cpu;           // its name; "unknown" where the system does not tell
  int64_t cores = 1;         // that this process may use
  int64_t memory_bytes = 0;  // physical; 0 where the system does not tell
  std::string system = {};   // "Linux 6.1.0 x86_64"
};
MachineInfo machine_info();

/// The most memory that this process ever held, as the operating system counts it; 0 where it does not tell.
int64_t peak_resident_bytes();

}  // namespace zoo
