// Counts the bytes of tensors.

#include "training/gradients/memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tests/training/support.h"
#include "training/runs/checkpoint.h"

namespace zoo::testing {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

torch::Tensor megabytes(int64_t n) { return torch::ones({n * kMegabyte / 4}); }

TEST(TensorMemory, CountsWhatIsAliveAndItsPeak) {
  TensorMemory memory(torch::kCPU);
  const auto kept = megabytes(3);
  EXPECT_GE(memory.current(), 3 * kMegabyte);
  EXPECT_LT(memory.current(), 3.1 * kMegabyte);
  {
    const auto gone = megabytes(5);
  }
  EXPECT_LT(memory.current(), 3.1 * kMegabyte);
  EXPECT_GE(memory.peak(), 8 * kMegabyte);
  EXPECT_LT(memory.peak(), 8.1 * kMegabyte);
  memory.reset_peak();
  EXPECT_EQ(memory.peak(), memory.current());
}

TEST(TensorMemory, CountsTheBackwardPass) {
  const auto weight = torch::ones({512, 512}).requires_grad_(true);
  TensorMemory memory(torch::kCPU);
  torch::matmul(weight, weight).sum().backward();
  EXPECT_GE(memory.current(), kMegabyte);  // the gradient stays
  EXPECT_GE(memory.peak(), 2 * kMegabyte);
}

/// A value of /proc/self/status in bytes, such as "VmHWM", the most memory that this process ever held.
int64_t from_status(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

// The operating system's number agrees within a tenth, if tensors are most of a process's memory and the
// allocator keeps no gaps between them.
TEST(TensorMemory, AgreesWithTheOperatingSystem) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps what is freed, and its own books";
#endif
  const TinyWorld world;
  const auto report = world.path("report");
  Child child([&] {
    ::mallopt(M_MMAP_THRESHOLD, 1 << 16);
    const auto experiment = world.experiment(
        "language_modeling",
        {"model.d_model=512", "model.n_heads=8", "model.n_layers=6", "training.steps=3",
         "training.batch_size=64", "training.gradient_accumulation=1", "training.evaluate_every=10"});
    train(world.experiment("language_modeling"),
          {.run_dir = world.path("warm")});  // libraries are loaded by then
    const int64_t before = from_status("VmRSS");
    train(experiment, {.run_dir = world.path("run")});
    std::ofstream(report) << from_status("VmHWM") - before;
    return 0;
  });
  ASSERT_EQ(child.wait(), 0);
  const auto state = read_training_state(*newest_checkpoint(world.path("run")));
  const double system = std::stod(read_file(report));
  EXPECT_GT(system, 300.0 * kMegabyte);
  EXPECT_NEAR(static_cast<double>(state.peak_memory_bytes) / system, 1.0, 0.1);
  EXPECT_GT(state.peak_resident_bytes, state.peak_memory_bytes);
}

TEST(Trainer, CountsFlopsAndMemoryAcrossResumptions) {
  const TinyWorld world;
  const auto experiment = world.experiment("text_to_text");
  train(experiment, {.run_dir = world.path("whole")});
  int steps = 0;
  train(experiment, {.run_dir = world.path("parts"), .should_stop = [&] { return ++steps == 9; }});
  train(experiment, {.run_dir = world.path("parts"), .existing = ExistingRun::resume});
  const auto whole = read_training_state(*newest_checkpoint(world.path("whole")));
  const auto parts = read_training_state(*newest_checkpoint(world.path("parts")));
  EXPECT_GT(whole.flops, 0);
  EXPECT_EQ(whole.flops, parts.flops);
  EXPECT_GT(whole.peak_memory_bytes, 0);
  EXPECT_EQ(whole.peak_memory_bytes, parts.peak_memory_bytes);
}

}  // namespace
}  // namespace zoo::testing
