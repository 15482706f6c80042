// zoo doctor: what it says of machines that are made up, and of this one.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/cuda.h>

#include "apps/doctor/arithmetic.h"
#include "apps/doctor/judge.h"
#include "apps/doctor/show_report.h"
#include "io/text_width.h"
#include "tests/cli/made_up_machines.h"
#include "tests/cli/support.h"
#include "tests/support/environment.h"
#include "tests/support/strict_device.h"

namespace zoo::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string doctor_text(const MachineReport& report) { return to_text(report, judge(report)); }

// The page quotes these files. ZOO_RENEW=1 writes them; scripts/quote_sources.py --write then renews the
// page.
TEST(DoctorReport, IsWhatTheDocumentationShows) {
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "doctor";
  for (const auto& [name, report] :
       {std::pair("processor", processor_machine()), std::pair("gpu", gpu_machine()),
        std::pair("without-cuda", machine_without_cuda())}) {
    SCOPED_TRACE(name);
    const auto text = doctor_text(report);
    const auto file = folder / fmt::format("{}.txt", name);
    if (std::getenv("ZOO_RENEW") != nullptr) write_file_atomically(file, text);
    EXPECT_EQ(read_file(file), text);
    EXPECT_LE(std::ranges::count(text, '\n'), 30);
    std::istringstream lines(text.substr(0, text.find("\n\n")));  // facts; what is wrong may be longer
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 100U) << line;
  }
}

struct MadeUpCase {
  MachineReport (*machine)();
  std::function<void(MachineReport&)> change;
  std::string found;  // a part of the only problem or remark
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(DoctorReport, SaysWhatIsWrongAndWhatToDo) {
  const auto nothing = [](MachineReport&) {};
  const std::vector<MadeUpCase> cases = {
      {machine_without_cuda, [](auto& m) { m.installation.data.exists = true; },
       "this machine has an NVIDIA GPU (NVIDIA H100 80GB HBM3), but LibTorch has no CUDA: run "
       "ZOO_TORCH_INDEX=pypi scripts/setup.sh, then scripts/build.sh"},
      {processor_machine, [](auto& m) { m.gpu.system.has_device = true; },
       "has an NVIDIA GPU, but LibTorch has no CUDA"},
      {processor_machine, [](auto& m) { m.gpu.system.driver = "550.54"; },
       "has an NVIDIA GPU, but LibTorch has no CUDA"},
      {machine_with_old_driver, nothing,
       "the NVIDIA driver 535.104.05 supports CUDA up to 12.2, but LibTorch was built for CUDA 13.0: update "
       "the driver"},
      {machine_with_old_driver, [](auto& m) { m.gpu.driver.reset(); },
       "libcuda.so.1 is missing: install the driver"},
      {machine_with_old_driver,
       [](auto& m) { m.gpu.driver = DriverFacts{{13, 0}, "system not ready (802)", {}}; },
       "cannot be used: system not ready (802); restart the machine"},
      {machine_with_old_driver, [](auto& m) { m.gpu.driver->cuda = {13, 1}; },
       "sees no GPU: update the driver"},
      {machine_with_old_driver,
       [](auto& m) {
         m.gpu.driver->cuda = {13, 1};
         m.gpu.libtorch_warning = "error 803";
       },
       "sees no GPU (error 803): update the driver"},
      {gpu_machine, [](auto& m) { m.arithmetic[1].losses[2] *= 1.01; },
       "cuda:0 computes something else than the processor: the loss of step 3 is "},
      {gpu_machine, [](auto& m) { m.arithmetic[1].text = m.arithmetic[1].text_without_cache = "x"; },
       "cuda:0 computes something else than the processor: it writes 'x', not ' has lions"},
      {gpu_machine, [](auto& m) { m.arithmetic[1].failure = "CUDA error: no kernel\nimage"; },
       "cuda:0 fails: CUDA error: no kernel\\nimage; update the driver"},
      {gpu_machine, [](auto& m) { m.arithmetic[1].losses[1] = kNan; }, "the loss of step 2 is not a number"},
      {processor_machine, [](auto& m) { m.arithmetic[0].losses[3] = kNan; },
       "cpu computes wrongly: the loss of step 4 is not a number; run it with ATEN_CPU_CAPABILITY=default"},
      {processor_machine, [](auto& m) { m.arithmetic[0].losses.clear(); },
       "the loss of step 1 is not a number"},
      {processor_machine, [](auto& m) { m.arithmetic[0].losses.back() = 5; },
       "the loss goes from 5.5842 to 5.0000"},
      {processor_machine, [](auto& m) { m.arithmetic[0].text_without_cache = "y"; }, "without it 'y'"},
      {processor_machine, [](auto& m) { m.versions.libtorch = "2.12.0"; },
       "built with LibTorch 2.13.0, but runs with 2.12.0: build it again"},
      {processor_machine, [](auto& m) { m.installation.missing_configuration = "no"; }, "set ZOO_CONFIGS"},
      {processor_machine, [](auto& m) { m.installation.cache.can_write = false; }, "set ZOO_CACHE"},
      {processor_machine, [](auto& m) { m.installation.working.free_bytes = 999'999'999; },
       "only 1.00 GB are free in /home/ada/transformer-zoo"},
  };
  for (const auto& [machine, change, found] : cases) {
    SCOPED_TRACE(found);
    auto report = machine();
    change(report);
    const auto findings = judge(report);
    EXPECT_THAT(findings.problems, ElementsAre(AllOf(HasSubstr(found), Not(HasSubstr("\n")))));
    EXPECT_THAT(findings.remarks, IsEmpty());
    EXPECT_THAT(doctor_text(report), AllOf(HasSubstr("\nproblem: "), Not(HasSubstr("Everything works"))));
    EXPECT_EQ(to_json(report, findings)["problems"].size(), 1U);
  }
}

TEST(DoctorReport, RemarksOnWhatIsNoProblem) {
  const std::vector<MadeUpCase> cases = {
      {gpu_machine,
       [](auto& m) {
         m.gpu.seen_by_libtorch = 2;
         m.versions.has_nccl = false;
       },
       "2 GPUs cannot train one model together"},
      {machine_without_cuda,
       [](auto& m) {
         m.installation.data.exists = true;
         m.gpu.visible_devices = "";
         m.gpu.driver->gpus.clear();
       },
       "CUDA_VISIBLE_DEVICES is '', which hides the GPUs"},
      {gpu_machine, [](auto& m) { m.processor.core_limit = 2.5; },
       "16 threads share the time of 2.5 cores, which the container allows: set OMP_NUM_THREADS=2"},
      {gpu_machine, [](auto& m) { m.processor.core_limit = 0.5; }, "set OMP_NUM_THREADS=1"},
      {processor_machine, [](auto& m) { m.installation.data.exists = false; }, "scripts/get_data.sh"},
      {processor_machine, [](auto& m) { m.installation.cache = {}; }, "set ZOO_CACHE"},
      {processor_machine, [](auto& m) { m.installation.working.can_write = false; }, "give zoo train --out"},
      {processor_machine, [](auto& m) { m.memory.available_bytes = 500'000'000; }, "only 0.50 GB of memory"},
      {processor_machine, [](auto& m) { m.versions.build_type = "Debug"; }, "which is slow"},
  };
  for (const auto& [machine, change, found] : cases) {
    SCOPED_TRACE(found);
    auto report = machine();
    change(report);
    const auto findings = judge(report);
    EXPECT_THAT(findings.problems, IsEmpty());
    EXPECT_THAT(findings.remarks, ElementsAre(AllOf(HasSubstr(found), Not(HasSubstr("\n")))));
    EXPECT_THAT(doctor_text(report), AllOf(HasSubstr("\nremark: "), HasSubstr("\nEverything works.\n")));
  }
}

TEST(DoctorReport, HasNothingToSayOfAHealthyMachine) {
  std::vector<MachineReport> healthy = {processor_machine(), gpu_machine(), gpu_machine(),
                                        processor_machine()};
  healthy[2].gpu.seen_by_libtorch = 2;    // with NCCL
  healthy[2].gpu.driver->cuda = {12, 8};  // whatever it says: LibTorch uses the GPUs
  healthy[3].gpu.driver = DriverFacts{{13, 0}, "no CUDA-capable device is detected (100)", {}};
  healthy[1].arithmetic[1].losses.back() = 0.05;  // rounding that has grown over many steps
  for (auto& report : healthy) {
    for (auto& check : report.arithmetic)
      if (check.device != "cpu") check.losses[1] *= 1.0005;  // rounding
    const auto findings = judge(report);
    EXPECT_THAT(findings.problems, IsEmpty());
    EXPECT_THAT(findings.remarks, IsEmpty());
  }
}

TEST(DoctorReport, IsADocument) {
  auto report = machine_with_old_driver();
  report.arithmetic[0].losses[2] = kNan;
  report.installation.cache = {};
  const auto document = json::parse(to_json(report, judge(report)).dump());
  EXPECT_THAT(keys(document), ElementsAre("arithmetic", "folders", "gpu", "memory", "problems", "processor",
                                          "remarks", "system", "versions"));
  EXPECT_EQ(document["versions"]["libtorch_cuda"], "13.0");
  EXPECT_EQ(document["gpu"]["driver"]["gpus"][0]["compute_capability"], "9.0");
  EXPECT_EQ(document["gpu"]["kernel_driver"], "535.104.05");
  EXPECT_TRUE(document["arithmetic"][0]["losses"][2].is_null());
  EXPECT_TRUE(document["folders"]["cache"].is_null());
  EXPECT_EQ(document["folders"]["working"]["free_bytes"], 73'000'000'000);
  EXPECT_EQ(document["problems"].size(), 2U);
}

TEST(Doctor, ExaminesThisMachine) {
  const TempDir dir;
  const auto outcome = run_zoo(dir, "doctor --device cpu --json");
  EXPECT_EQ(outcome.err, "");
  const auto document = json::parse(outcome.out);
  EXPECT_EQ(outcome.code, document["problems"].empty() ? 0 : 1);
  const auto& check = document["arithmetic"][0];
  EXPECT_EQ(document["arithmetic"].size(), 1U);
  EXPECT_EQ(check["device"], "cpu");
  EXPECT_TRUE(check["failure"].is_null()) << check;
  EXPECT_LT(check["losses"].back(), 0.1);
  EXPECT_EQ(check["text"], " has lions, owls and whales; ");
  EXPECT_EQ(check["text_without_cache"], check["text"]);
  EXPECT_EQ(document["versions"]["libtorch"], document["versions"]["libtorch_at_build"]);
  EXPECT_GT(document["memory"]["read_bytes_per_second"], 1e8);
  EXPECT_EQ(document["processor"]["threads"], 1) << "as OMP_NUM_THREADS says";
  EXPECT_EQ(document["folders"]["data"]["path"], dir.path().string());
  for (const auto& problem : document["problems"])
    EXPECT_EQ(problem.get<std::string>().find('\n'), std::string::npos);

  const auto text = run_zoo(dir, "doctor --device cpu");
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out, AllOf(HasSubstr("transformer-zoo 0."), HasSubstr("\ncheck on cpu "),
                              HasSubstr(" GB/s by 1 thread\n")));
  EXPECT_LE(std::ranges::count(text.out, '\n'), 40);
}

TEST(Doctor, ComputesTheSameOnADeviceWithTheRulesOfAGpu) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "LibTorch has one accelerator at a time";
  const auto device = strict_device();  // LibTorch wants to know it before the first backward pass
  auto report = processor_machine();
  report.arithmetic = {check_arithmetic(c10::kCPU), check_arithmetic(device)};
  EXPECT_EQ(report.arithmetic[1].failure, "");
  EXPECT_EQ(report.arithmetic[1].text, " has lions, owls and whales; ");
  EXPECT_THAT(judge(report).problems, IsEmpty());
}

TEST(Doctor, KeepsAFailureToOneLine) {
  // No machine has so many GPUs.
  const auto check = check_arithmetic(c10::Device("cuda:120"));
  EXPECT_THAT(check.failure, AllOf(Not(IsEmpty()), Not(HasSubstr("\n"))));
  EXPECT_THAT(check.losses, IsEmpty());
}

TEST(Doctor, EndsWithExitCodeOneIfSomethingIsWrong) {
  const TempDir dir;
  dir.write("cache", "a file in place of the folder");
  const auto outcome = run_zoo(dir, "doctor --device cpu");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\nproblem: the cache "), Not(HasSubstr("Everything works"))));
}

TEST(Doctor, RefusesAnUnknownDevice) {
  const TempDir dir;
  for (const auto* device : {"gpu", "cuda:120"}) {
    const auto outcome = run_zoo(dir, fmt::format("doctor --device {}", device));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("'{}'", device)));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1);
  }
}

TEST(Doctor, AsksTheDriver) {
  const TempDir dir;
  const ScopedEnvironment library("LD_LIBRARY_PATH",
                                  std::filesystem::path(ZOO_FAKE_CUDA_DRIVER).parent_path());
  const auto outcome = run_zoo(dir, "doctor --device cpu --json");
  const auto document = json::parse(outcome.out);
  if (!document["versions"]["libtorch_cuda"].is_null()) GTEST_SKIP() << "LibTorch uses the driver itself";
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(document["gpu"]["driver"]["gpus"][1]["name"], "Another GPU");
  EXPECT_THAT(document["problems"][0].get<std::string>(),
              HasSubstr("has an NVIDIA GPU (Made-up GPU), but LibTorch has no CUDA"));
}

}  // namespace
}  // namespace zoo::testing
