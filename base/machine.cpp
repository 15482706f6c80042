#include "base/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
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

namespace fs = std::filesystem;

/// The number in a file that holds only a number; nullopt for "max" and for a missing file.
std::optional<int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

/// The number after `name` in a file whose lines hold a name and a number.
std::optional<int64_t> number_in(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t value = 0;
    if (words >> word >> value && word == name) return value;
  }
  return std::nullopt;
}

/// Names in the two versions of control groups. `reclaimable` is a line of memory.stat: the cache of files
/// that are no longer in use.
struct CgroupFiles {
  const char *limit, *usage, *reclaimable;
};
constexpr CgroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr CgroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

std::optional<int64_t> left_in_group(const fs::path& group, const CgroupFiles& files) {
  const auto limit = number_in(group / files.limit), usage = number_in(group / files.usage);
  if (!limit || !usage) return std::nullopt;
  return *limit - *usage + number_in(group / "memory.stat", files.reclaimable).value_or(0);
}

void lower(std::optional<int64_t>& bytes, std::optional<int64_t> other) {
  if (other) bytes = std::min(bytes.value_or(*other), *other);
}

/// The least memory left in the group and its parents. Inside a container, `path` may be the path on the
/// host, which does not exist here; `mount` is then the container's own group.
std::optional<int64_t> left_in_groups(const fs::path& mount, std::string_view path,
                                      const CgroupFiles& files) {
  std::optional<int64_t> left = left_in_group(mount, files);
  fs::path group = mount;
  for (const auto& part : fs::path(path).relative_path()) lower(left, left_in_group(group /= part, files));
  return left;
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

std::optional<int64_t> available_memory_bytes(const fs::path& root) {
  auto available = number_in(root / "proc/meminfo", "MemAvailable:");
  if (available) *available *= 1024;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // hierarchy:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const auto path = std::string_view(line).substr(second + 1);
    const auto mount = root / "sys/fs/cgroup";
    if (controllers == ",,") lower(available, left_in_groups(mount, path, kVersion2));
    if (controllers.find(",memory,") != controllers.npos)
      lower(available, left_in_groups(mount / "memory", path, kVersion1));
  }
  if (available) available = std::max<int64_t>(*available, 0);
  return available;
}

int64_t peak_resident_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * 1024 : 0;
}

}  // namespace zoo
