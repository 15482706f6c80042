#include "base/machine.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

TEST(AvailableMemory, IsThatOfTheMachine) {
  const TempDir root;
  EXPECT_EQ(available_memory_bytes(root.path()), std::nullopt);
  root.write("proc/meminfo", "MemTotal:  9000000 kB\nMemFree:  100 kB\nMemAvailable:  204800 kB\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 200 * kMegabyte);
  const auto real = available_memory_bytes();
  ASSERT_TRUE(real.has_value());
  EXPECT_GT(*real, 0);
  EXPECT_LE(*real, machine_info().memory_bytes);
}

TEST(AvailableMemory, KeepsWithinTheControlGroupsAround) {
  const TempDir root;
  root.write("proc/meminfo", "MemAvailable:  1048576 kB\n");
  root.write("proc/self/cgroup", "0::/batch/job\n");
  root.write("sys/fs/cgroup/batch/memory.max", "629145600\n");
  root.write("sys/fs/cgroup/batch/memory.current", "104857600\n");
  root.write("sys/fs/cgroup/batch/job/memory.max", "max\n");
  root.write("sys/fs/cgroup/batch/job/memory.current", "1\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 500 * kMegabyte);
  // The cache of files that are no longer in use counts as available.
  root.write("sys/fs/cgroup/batch/memory.stat", "anon 3\ninactive_file 10485760\nactive_file 9\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 510 * kMegabyte);
  root.write("sys/fs/cgroup/batch/job/memory.max", "1048577\n");
  EXPECT_EQ(available_memory_bytes(root.path()), kMegabyte);
  root.write("sys/fs/cgroup/batch/job/memory.current", "99999999\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 0);
}

TEST(AvailableMemory, OfAContainerWithTheFirstVersion) {
  const TempDir root;
  root.write("proc/meminfo", "MemAvailable:  1048576 kB\n");
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n4:hugetlb,memory:/docker/abc\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "209715200\n");
  EXPECT_EQ(available_memory_bytes(root.path()), 100 * kMegabyte);
}

TEST(CoreLimit, IsTheLeastOfTheControlGroupsAround) {
  const TempDir root;
  EXPECT_EQ(core_limit(root.path()), std::nullopt);
  root.write("proc/self/cgroup", "0::/batch/job\n");
  root.write("sys/fs/cgroup/batch/job/cpu.max", "max 100000\n");
  EXPECT_EQ(core_limit(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/batch/cpu.max", "150000 100000\n");
  EXPECT_EQ(core_limit(root.path()), 1.5);
  root.write("sys/fs/cgroup/batch/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(core_limit(root.path()), 0.5);
  root.write("proc/self/cgroup", "5:cpuacct,cpu:/docker/abc\n");
  EXPECT_EQ(core_limit(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(core_limit(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(core_limit(root.path()), 2.0);
}

}  // namespace
}  // namespace zoo::testing
