// Tests on a GPU. Without a GPU, all are skipped.

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "checkpoints/run.h"
#include "generation/generator.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

class OnAGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_.is_cuda() && !torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  }

  /// The loss of each step.
  std::vector<double> losses(std::string_view task, torch::Device device, const std::string& name,
                             std::vector<std::string> overrides) const {
    for (const char* always : {"training.log_every=1", "training.threads=1"}) overrides.emplace_back(always);
    const auto run =
        train(world_.experiment(task, overrides), {.run_dir = world_.path(name), .device = device});
    return losses_of(run.run_dir);
  }
  static std::vector<double> losses_of(const std::filesystem::path& run) {
    std::vector<double> result;
    for (const auto& row : timeless_metrics(run)) {
      if (row.contains("train_loss")) result.push_back(row["train_loss"]);
    }
    return result;
  }
  static void expect_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
    ASSERT_EQ(a.size(), b.size());
    ASSERT_THAT(a, Not(IsEmpty()));
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "step " << i + 1;
  }

  TinyWorld world_;
  // ZOO_TEST_GPU=cpu runs these tests on the CPU, to check the tests themselves.
  const torch::Device device_{std::getenv("ZOO_TEST_GPU") != nullptr ? std::getenv("ZOO_TEST_GPU")
                                                                     : "cuda:0"};
};

const std::vector<std::string> kExact = {"training.precision=fp32", "model.dropout=0",
                                         "model.attention_dropout=0", "model.activation_dropout=0"};

TEST_F(OnAGpu, EveryTaskLearnsAsOnTheProcessor) {
  for (const std::string task :
       {"language_modeling", "masked_language_modeling", "text_to_text", "text_classification"}) {
    SCOPED_TRACE(task);
    expect_close(losses(task, device_, task + "-gpu", kExact),
                 losses(task, torch::kCPU, task + "-cpu", kExact), 2e-3);
  }
}

TEST_F(OnAGpu, SixteenBitsLearnNearlyTheSame) {
  auto overrides = kExact;
  const auto exact = losses("language_modeling", device_, "fp32", overrides);
  for (const std::string precision : {"bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    overrides[0] = "training.precision=" + precision;
    expect_close(losses("language_modeling", device_, precision, overrides), exact, 0.05);
  }
}

TEST_F(OnAGpu, ActivationCheckpointingDropsTheSame) {
  const std::vector<std::string> dropout = {"training.precision=fp32", "model.dropout=0.2"};
  auto checkpointing = dropout;
  checkpointing.emplace_back("training.activation_checkpointing=every_layer");
  expect_close(losses("language_modeling", device_, "kept", dropout),
               losses("language_modeling", device_, "recomputed", checkpointing), 1e-3);
}

TEST_F(OnAGpu, RecordedStepsAreThoseThatAreNot) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    const std::vector<std::string> plain = {"training.precision=" + precision, "model.dropout=0.2"};
    auto recorded = plain;
    if (device_.is_cuda()) recorded.emplace_back("training.cuda_graphs=true");
    expect_close(losses("language_modeling", device_, "recorded-" + precision, recorded),
                 losses("language_modeling", device_, "plain-" + precision, plain),
                 precision == "fp32" ? 1e-3 : 0.02);
  }
}

TEST_F(OnAGpu, ATrainingGoesOnWhereItStopped) {
  const std::vector<std::string> overrides = {"training.precision=fp32", "model.dropout=0.2",
                                              "training.log_every=1"};
  const auto whole = losses("language_modeling", device_, "whole", overrides);
  const auto experiment = world_.experiment("language_modeling",
                                            {overrides[0], overrides[1], overrides[2], "training.threads=1"});
  TrainOptions options{.run_dir = world_.path("parts"), .existing = ExistingRun::resume, .device = device_};
  int64_t steps = 0;
  options.should_stop = [&steps] { return steps++ == 9; };
  ASSERT_EQ(train(experiment, options).end, TrainEnd::interrupted);
  options.should_stop = nullptr;
  ASSERT_EQ(train(experiment, options).end, TrainEnd::all_steps);
  expect_close(losses_of(world_.path("parts")), whole, 1e-3);
}

TEST_F(OnAGpu, WritesWhatTheProcessorWrites) {
  for (const std::string task : {"language_modeling", "text_to_text"}) {
    SCOPED_TRACE(task);
    losses(task, device_, task, kExact);
    std::vector<std::string> texts;
    for (const auto device : {device_, torch::Device(torch::kCPU)}) {
      const auto run = Run::open(world_.path(task), device);
      const auto outputs = Generator(run.model(), run.tokenizer())
                               .generate(std::vector<std::string>{"sun moon", "star"},
                                         {.max_new_tokens = 8, .temperature = 0});
      std::string text;
      for (const auto& prompt : outputs) text += prompt.outputs.front().text + "\n";
      texts.push_back(text);
    }
    EXPECT_EQ(texts[0], texts[1]);
  }
}

}  // namespace
}  // namespace zoo::testing
