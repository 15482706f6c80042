// Several processes that record their steps, each on a strict device of its own
// (tests/support/strict_device.h). The suite is alone in its file and forks before anything else, because the
// device has to be registered before the first backward pass of a process.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "base/device_graph.h"
#include "io/files.h"
#include "tests/support/device_work.h"
#include "tests/support/in_processes.h"
#include "tests/support/strict_device.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

class RecordedProcesses : public ::testing::Test {
 protected:
  static constexpr int64_t kProcesses = 2, kSteps = 8;

  void SetUp() override {
    if (torch::cuda::is_available()) GTEST_SKIP() << "LibTorch has one accelerator at a time";
  }

  /// Trains in two processes. `launches`: what part of the kernels of the last step but one the host starts
  /// one by one, at least and at most.
  std::filesystem::path trained(const std::string& name, std::vector<std::string> overrides, double least,
                                double most) const {
    for (const auto& always :
         {std::string("training.steps=8"), std::string("training.log_every=1"),
          std::string("training.evaluate_every=100"), std::string("training.checkpoint_every=100"),
          std::string("training.threads=1")})
      overrides.push_back(always);
    const auto experiment = world_.experiment("language_modeling", overrides);
    const Port port(Port::Use::free);
    std::vector<std::unique_ptr<Child>> children;
    for (int64_t rank = 0; rank < kProcesses; ++rank) {
      children.push_back(std::make_unique<Child>([&] {
        const auto device = strict_device();
        if (!make_device_graph(device.type())) return 0;
        TrainOptions options{.run_dir = world_.path(name), .device = device};
        options.place = ProcessPlace{.rank = rank,
                                     .size = kProcesses,
                                     .local_rank = rank,
                                     .local_size = kProcesses,
                                     .port = port.number()};
        std::vector<DeviceWork> after;
        options.on_progress = [&](const TrainProgress& progress) {
          if (progress.message.empty()) after.push_back(strict_device_work());
        };
        train(experiment, options);
        if (rank > 0) return 0;  // the first one alone reports
        const auto work = after.at(kSteps - 2).since(after.at(kSteps - 3));
        const double part = static_cast<double>(work.launches) / static_cast<double>(work.kernels);
        EXPECT_GE(part, least) << work.in_words();
        EXPECT_LE(part, most) << work.in_words() << "\n" << work.most_frequent();
        return ::testing::Test::HasFailure() ? 1 : 0;
      }));
    }
    for (auto& child : children) EXPECT_EQ(child->wait(), 0);
    return world_.path(name);
  }

  TinyWorld world_;
};

// Each process records its forward and backward pass. The exchange of gradients and the optimiser are not
// recorded.
TEST_F(RecordedProcesses, TakeTheStepsThatAreNotRecorded) {
  const std::vector<std::vector<std::string>> cases = {
      {"training.precision=bf16", "model.dropout=0.2"},
      {"training.precision=fp32", "training.gradient_accumulation=2"},
      {"training.precision=fp16", "training.parallel.shard_optimizer=true"}};
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].front());
    auto plain = cases[i];
    plain.emplace_back("training.cuda_graphs=false");
    const auto wanted = trained(std::to_string(i) + "-plain", plain, 1, 1),
               found = trained(std::to_string(i) + "-recorded", cases[i], 0, 0.5);
    EXPECT_EQ(timeless_metrics(found), timeless_metrics(wanted));
    EXPECT_TRUE(read_file(found / "model.safetensors") == read_file(wanted / "model.safetensors"));
  }
}

}  // namespace
}  // namespace zoo::testing
