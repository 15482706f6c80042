#include "base/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>
#include <thread>

#include <fmt/format.h>

namespace zoo {
namespace {

/// The name of a Linux distribution with its version; empty if there is none.
std::string distribution_name() {
  std::ifstream file("/etc/os-release");
  constexpr std::string_view key = "PRETTY_NAME=";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    line.erase(0, key.size());
    std::erase(line, '"');
    return line;
  }
  return {};
}

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

enum class GroupVersion { first, second };

/// Calls visit(group, version) for each control group of this process, and for the groups above it, which
/// rule over `controller` ("memory", "cpu"). Inside a container, the path of a group may be the one on the
/// host, which does not exist here; the mounted folder is then the container's own group.
void visit_groups(const fs::path& root, std::string_view controller,
                  const std::function<void(const fs::path&, GroupVersion)>& visit) {
  const auto visit_path = [&](fs::path group, std::string_view path, GroupVersion version) {
    visit(group, version);
    for (const auto& part : fs::path(path).relative_path()) visit(group /= part, version);
  };
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // hierarchy:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const auto path = std::string_view(line).substr(second + 1);
    const auto mount = root / "sys/fs/cgroup";
    if (controllers == ",,") visit_path(mount, path, GroupVersion::second);
    if (controllers.find(fmt::format(",{},", controller)) != controllers.npos)
      visit_path(mount / controller, path, GroupVersion::first);
  }
}

/// The cores' time that a group may use; nullopt: as much as it wants.
std::optional<double> cores_of_group(const fs::path& group, GroupVersion version) {
  std::optional<int64_t> quota, period;
  if (version == GroupVersion::first) {
    quota = number_in(group / "cpu.cfs_quota_us");
    period = number_in(group / "cpu.cfs_period_us");
  } else {
    std::ifstream file(group / "cpu.max");  // "max 100000" or "150000 100000"
    int64_t value = 0, time = 0;
    if (file >> value >> time) quota = value, period = time;
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<int64_t> left_in_group(const fs::path& group, const CgroupFiles& files) {
  const auto limit = number_in(group / files.limit), usage = number_in(group / files.usage);
  if (!limit || !usage) return std::nullopt;
  return *limit - *usage + number_in(group / "memory.stat", files.reclaimable).value_or(0);
}

template <class Number>
void lower(std::optional<Number>& number, std::optional<Number> other) {
  if (other) number = std::min(number.value_or(*other), *other);
}

}  // namespace

MachineInfo machine_info() {
  MachineInfo info{.cpu = cpu_name()};
  if (const auto cores = std::thread::hardware_concurrency(); cores > 0) info.cores = cores;
  const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  if (pages > 0 && page > 0) info.memory_bytes = pages * page;
  utsname name{};
  if (uname(&name) == 0) info.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  info.distribution = distribution_name();
  return info;
}

std::optional<double> core_limit(const fs::path& root) {
  std::optional<double> cores;
  visit_groups(root, "cpu", [&](const fs::path& group, GroupVersion version) {
    lower(cores, cores_of_group(group, version));
  });
  return cores;
}

std::optional<int64_t> available_memory_bytes(const fs::path& root) {
  auto available = number_in(root / "proc/meminfo", "MemAvailable:");
  if (available) *available *= 1024;
  visit_groups(root, "memory", [&](const fs::path& group, GroupVersion version) {
    lower(available, left_in_group(group, version == GroupVersion::first ? kVersion1 : kVersion2));
  });
  if (available) available = std::max<int64_t>(*available, 0);
  return available;
}

int64_t peak_resident_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * 1024 : 0;
}

}  // namespace zoo
