#include "io/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include <fmt/format.h>

namespace zoo {
namespace {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != line.npos && colon + 2 < line.size())
      return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

MachineInfo machine_info() {
  MachineInfo info{.cpu = cpu_name()};
  if (const auto cores = std::thread::hardware_concurrency(); cores > 0) info.cores = cores;
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0) info.memory_bytes = pages * page;
  utsname name{};
  if (uname(&name) == 0) info.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  return info;
}

int64_t peak_resident_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * 1024 : 0;
}

}  // namespace zoo
