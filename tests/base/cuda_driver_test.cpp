#include "base/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/environment.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {
namespace {

using ::testing::IsEmpty;

constexpr const char* kFake = ZOO_FAKE_CUDA_DRIVER;

TEST(CudaDriver, SaysWhichGpusThereAre) {
  const auto driver = CudaDriver::load(kFake);
  ASSERT_TRUE(driver);
  EXPECT_EQ(driver->problem(), "");
  EXPECT_EQ(driver->version().text(), "12.4");
  const auto gpus = driver->gpus();
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].name, "Made-up GPU");
  EXPECT_EQ(gpus[1].name, "Another GPU");
  EXPECT_EQ(gpus[0].memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(gpus[0].major, 8);
  EXPECT_EQ(gpus[0].minor, 6);
  EXPECT_EQ(gpus[1].minor, 7);
}

TEST(CudaDriver, SaysWhyItCannotBeUsed) {
  for (const auto& [error, text] : {std::pair("100", "no CUDA-capable device is detected (100)"),
                                    std::pair("803", "unknown error (803)")}) {
    const ScopedEnvironment set("FAKE_CUDA_ERROR", error);
    const auto driver = CudaDriver::load(kFake);
    ASSERT_TRUE(driver);
    EXPECT_EQ(driver->problem(), text);
    EXPECT_THAT(driver->gpus(), IsEmpty());
    EXPECT_EQ(driver->version(), (CudaVersion{12, 4}));
  }
}

TEST(CudaDriver, IsNoOtherLibraryAndNoFile) {
  EXPECT_FALSE(CudaDriver::load("libnowhere.so.1"));
  EXPECT_FALSE(CudaDriver::load("libm.so.6"));
  const TempDir dir;
  EXPECT_FALSE(CudaDriver::load(dir.write("libcuda.so.1", "no library").string()));
}

TEST(CudaDriver, VersionsAreOrdered) {
  EXPECT_EQ(CudaVersion::of(13000).text(), "13.0");
  EXPECT_EQ(CudaVersion::of(11080).text(), "11.8");
  EXPECT_LT(CudaVersion::of(12080), CudaVersion::of(13000));
}

TEST(NvidiaSystem, IsWhatTheKernelSays) {
  const TempDir root;
  EXPECT_FALSE(nvidia_system(root.path()).has_device);
  EXPECT_EQ(nvidia_system(root.path()).driver, std::nullopt);
  root.write("dev/nvidia0", "");
  EXPECT_TRUE(nvidia_system(root.path()).has_device);
  for (const auto* line :
       {"NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023",
        "NVIDIA UNIX Open Kernel Module for x86_64  535.104.05  Release Build  (root@a.b)"}) {
    root.write("proc/driver/nvidia/version",
               std::string("NVRM version: ") + line + "\nGCC version:  gcc 12.2.0\n");
    EXPECT_EQ(nvidia_system(root.path()).driver, "535.104.05");
  }
  root.write("proc/driver/nvidia/version", "nothing known\n");
  EXPECT_EQ(nvidia_system(root.path()).driver, "");
}

}  // namespace
}  // namespace zoo::testing
