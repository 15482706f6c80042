// Counts the bytes of tensors.

#include "base/tensor_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "checkpoints/checkpoint.h"
#include "checkpoints/initial_weights.h"
#include "data/prefetch.h"
#include "models/families/model_cost.h"
#include "tasks/task.h"
#include "tests/support/training.h"

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

/// Batches of a megabyte.
class LargeBatches final : public BatchSource {
 public:
  int64_t n_batches(int64_t) override { return 10; }
  Batch batch(int64_t, int64_t) override { return {.fields = {{"numbers", megabytes(1)}}}; }
};

TEST(TensorMemory, CountsBatchesOfAnotherThread) {
  TensorMemory memory(torch::kCPU);
  {
    const auto source = prefetched(std::make_unique<LargeBatches>());
    const auto first = source->batch(0, 0);
    source->expect(0, 1);
    const auto second = source->batch(0, 1);
    EXPECT_GE(memory.current(), 2 * kMegabyte);
  }
  EXPECT_EQ(memory.current(), 0);
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

/// The costs of the first steps of a training, counted batch by batch.
double flops_of(const Experiment& experiment) {
  const auto task = task_of_new_run(experiment);
  BatchPosition position;
  double forward = 0;
  for (int64_t step = 0; step < experiment.training.steps; ++step) {
    for (const auto& batch :
         next_batches(task->batches(Split::train), position, experiment.training.gradient_accumulation).all())
      forward += forward_flops(experiment.model, task->purpose(), pass_shape(batch));
  }
  return 3 * forward;  // the backward pass has two products for each of the forward pass
}

// One pair is much longer than all others, so that one step needs much more memory than all others.
TEST(Trainer, CountsFlopsAndMemoryAcrossResumptions) {
  const TinyWorld world;
  const std::string line(200, 's');
  for (const char* side : {"data/pairs.de", "data/pairs.en"})
    world.dir().write(side, line + "\n" + read_file(world.path(side)));
  auto experiment = world.experiment(
      "text_to_text", {"training.batch_size=1", "training.gradient_accumulation=1", "training.log_every=1",
                       "training.evaluate_every=1000", "training.checkpoint_every=1000",
                       "data.sequence_length=256", "model.max_positions=256"});
  experiment.training.steps =
      task_of_new_run(experiment)->batches(Split::train).n_batches(0);  // each pair once
  train(experiment, {.run_dir = world.path("whole")});
  const auto whole = read_training_state(*newest_checkpoint(world.path("whole")));
  EXPECT_DOUBLE_EQ(whole.flops, flops_of(experiment));

  int64_t before = 0, costliest = 0;
  for (const auto& row : metrics(world.path("whole"))) {
    if (!row.contains("train_loss")) continue;
    const auto peak = row.at("peak_memory_bytes").get<int64_t>();
    if (peak == whole.peak_memory_bytes) {
      costliest = row.at("step");
      break;
    }
    before = peak;
  }
  ASSERT_LT(before, whole.peak_memory_bytes / 2);
  ASSERT_LT(costliest, experiment.training.steps);
  int64_t steps = 0;
  train(experiment, {.run_dir = world.path("parts"), .should_stop = [&] { return steps++ == costliest; }});
  const auto stopped = read_training_state(*newest_checkpoint(world.path("parts")));
  EXPECT_EQ(stopped.step, costliest);
  train(experiment, {.run_dir = world.path("parts"), .existing = ExistingRun::resume});
  const auto parts = read_training_state(*newest_checkpoint(world.path("parts")));
  EXPECT_EQ(parts.flops, whole.flops);
  EXPECT_EQ(parts.peak_memory_bytes, whole.peak_memory_bytes);
}

}  // namespace
}  // namespace zoo::testing
