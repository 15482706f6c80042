#include "apps/doctor/judge.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace zoo {
namespace {

constexpr double kLittle = 1e9;          // bytes of memory, or of a disk
constexpr size_t kComparedSteps = 20;    // later, differences by rounding have grown
constexpr double kLossTolerance = 1e-3;  // relative, between two devices in fp32
constexpr double kLearntShare = 0.5;     // a model that learns gets below this share of its first loss
constexpr size_t kLongFailure = 200;     // bytes

class Judge {
 public:
  explicit Judge(const MachineReport& report) : report_(report) {}

  Findings findings() {
    judge_versions();
    judge_threads();
    judge_gpus();
    for (const auto& check : report_.arithmetic) judge_arithmetic(check);
    judge_installation();
    return std::move(findings_);
  }

 private:
  template <class... Arguments>
  void problem(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    findings_.problems.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  template <class... Arguments>
  void remark(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    findings_.remarks.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  void judge_versions();
  void judge_threads();
  void judge_gpus();
  void judge_unseen_gpus(const CudaVersion& cuda);
  void judge_arithmetic(const ArithmeticFacts& check);
  void compare_with_processor(const ArithmeticFacts& check);
  void judge_installation();

  const MachineReport& report_;
  Findings findings_;
};

void Judge::judge_versions() {
  const auto& versions = report_.versions;
  if (versions.libtorch != versions.libtorch_at_build) {
    problem("the program was built with LibTorch {}, but runs with {}: build it again (scripts/build.sh)",
            versions.libtorch_at_build, versions.libtorch);
  }
  if (versions.build_type == "Debug")
    remark("this is a Debug build, which is slow: scripts/build.sh makes a fast one, build/release/zoo");
}

void Judge::judge_threads() {
  const auto& processor = report_.processor;
  if (processor.core_limit && static_cast<double>(processor.threads) >= *processor.core_limit + 1) {
    remark("{} threads share the time of {:.1f} cores, which the container allows: set OMP_NUM_THREADS={}",
           processor.threads, *processor.core_limit, std::max(1.0, std::floor(*processor.core_limit)));
  }
  const auto available = report_.memory.available_bytes;
  if (available && static_cast<double>(*available) < kLittle) {
    remark("only {:.2f} GB of memory are available: end other programs, or use small models and batches",
           static_cast<double>(*available) / 1e9);
  }
}

void Judge::judge_gpus() {
  const auto& gpu = report_.gpu;
  const auto& versions = report_.versions;
  if (gpu.seen_by_libtorch > 0) {
    if (gpu.seen_by_libtorch > 1 && !versions.has_nccl) {
      remark(
          "{} GPUs cannot train one model together, because the program was built without NCCL: run "
          "scripts/setup.sh, which brings its headers with PyPI's wheel, then scripts/build.sh",
          gpu.seen_by_libtorch);
    }
    return;
  }
  const bool driver_has_gpus = gpu.driver && !gpu.driver->gpus.empty();
  if (!gpu.system.has_device && !gpu.system.driver && !driver_has_gpus) return;
  if (gpu.visible_devices && !driver_has_gpus) {
    remark("CUDA_VISIBLE_DEVICES is '{}', which hides the GPUs of this machine: unset it to use them",
           excerpt(*gpu.visible_devices));
  } else if (versions.libtorch_cuda) {
    judge_unseen_gpus(*versions.libtorch_cuda);
  } else {
    problem(
        "this machine has an NVIDIA GPU{}, but LibTorch has no CUDA: run ZOO_TORCH_INDEX=pypi "
        "scripts/setup.sh, then scripts/build.sh",
        driver_has_gpus ? fmt::format(" ({})", gpu.driver->gpus.front().name) : "");
  }
}

/// LibTorch was built for `cuda`, there are GPUs, and it sees none.
void Judge::judge_unseen_gpus(const CudaVersion& cuda) {
  const auto& driver = report_.gpu.driver;
  const auto& kernel = report_.gpu.system.driver;
  const auto name = kernel && !kernel->empty() ? fmt::format("the NVIDIA driver {}", *kernel)
                                               : std::string("the NVIDIA driver");
  if (!driver) {
    problem(
        "this machine has an NVIDIA GPU, but the driver's library libcuda.so.1 is missing: install the "
        "driver, or start the container with its GPUs (docker run --gpus all)");
  } else if (driver->cuda.major > 0 && driver->cuda.major < cuda.major) {
    problem(
        "{} supports CUDA up to {}, but LibTorch was built for CUDA {}: update the driver, or set "
        "ZOO_TORCH_INDEX to an index of PyTorch for CUDA {} and run scripts/setup.sh",
        name, driver->cuda.text(), cuda.text(), driver->cuda.major);
  } else if (!driver->problem.empty()) {
    problem("{} cannot be used: {}; restart the machine, or install the driver again", name,
            excerpt(driver->problem));
  } else {
    const auto& warning = report_.gpu.libtorch_warning;
    problem("{} supports CUDA {}, but LibTorch, built for CUDA {}, sees no GPU{}: update the driver", name,
            driver->cuda.text(), cuda.text(),
            warning.empty() ? "" : fmt::format(" ({})", excerpt(warning, kLongFailure)));
  }
}

void Judge::judge_arithmetic(const ArithmeticFacts& check) {
  const bool is_cpu = check.device == "cpu";
  const std::string_view cure = is_cpu
                                    ? "run it with ATEN_CPU_CAPABILITY=default, and report both outputs"
                                    : "update the driver, use --device cpu meanwhile, and report this output";
  if (!check.failure.empty()) {
    problem("{} fails: {}; {}", check.device, excerpt(check.failure, kLongFailure), cure);
    return;
  }
  const auto bad = std::ranges::find_if(check.losses, [](double loss) { return !std::isfinite(loss); });
  if (check.losses.empty() || bad != check.losses.end()) {
    problem("{} computes wrongly: the loss of step {} is not a number; {}", check.device,
            bad - check.losses.begin() + 1, cure);
    return;
  }
  if (check.losses.back() > kLearntShare * check.losses.front()) {
    problem("{} computes wrongly: the loss goes from {:.4f} to {:.4f} and should fall; {}", check.device,
            check.losses.front(), check.losses.back(), cure);
  }
  if (check.text != check.text_without_cache) {
    problem("{} computes wrongly: with its cache the model writes '{}', without it '{}'; {}", check.device,
            excerpt(check.text), excerpt(check.text_without_cache), cure);
  }
  if (!is_cpu) compare_with_processor(check);
}

void Judge::compare_with_processor(const ArithmeticFacts& check) {
  const auto& cpu = report_.arithmetic.front();
  if (cpu.losses.size() != check.losses.size()) return;  // the processor has failed
  for (size_t i = 0; i < std::min(cpu.losses.size(), kComparedSteps); ++i) {
    if (std::abs(check.losses[i] - cpu.losses[i]) <= kLossTolerance * std::abs(cpu.losses[i])) continue;
    problem(
        "{} computes something else than the processor: the loss of step {} is {:.6f}, not {:.6f}; "
        "update the driver, use --device cpu meanwhile, and report this output",
        check.device, i + 1, check.losses[i], cpu.losses[i]);
    return;
  }
  if (check.text != cpu.text) {
    problem(
        "{} computes something else than the processor: it writes '{}', not '{}'; update the driver, use "
        "--device cpu meanwhile, and report this output",
        check.device, excerpt(check.text), excerpt(cpu.text));
  }
}

void Judge::judge_installation() {
  const auto& [configurations, missing, working, data, cache] = report_.installation;
  if (!missing.empty()) {
    problem(
        "zoo train shakespeare-char-cpu finds no configuration: set ZOO_CONFIGS to the folder configs of "
        "the sources, or build or install the program again");
  }
  if (!cache.path.empty() && !cache.can_write) {
    problem(
        "the cache {} cannot be written, so texts are turned into tokens again each time: set ZOO_CACHE "
        "to a folder of yours",
        excerpt(cache.path));
  }
  if (cache.path.empty()) remark("there is no cache for tokens: set ZOO_CACHE to a folder of yours");
  if (working.free_bytes && static_cast<double>(*working.free_bytes) < kLittle) {
    problem("only {:.2f} GB are free in {}: delete files there, or give zoo train --out on another disk",
            static_cast<double>(*working.free_bytes) / 1e9, excerpt(working.path));
  }
  if (!working.can_write)
    remark("the working folder cannot be written: give zoo train --out, or work elsewhere");
  if (!data.exists) {
    remark("there is no folder for data, {}: scripts/get_data.sh makes it, or set ZOO_DATA",
           excerpt(data.path));
  }
}

}  // namespace

Findings judge(const MachineReport& report) { return Judge(report).findings(); }

}  // namespace zoo
