#pragma once
// Tests of every path on a GPU. They run on two devices: a GPU, without which they are skipped, and the
// strict device, which is always there (tests/support/strict_device.h).

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "checkpoints/run.h"
#include "tests/support/strict_device.h"
#include "tests/support/training.h"

namespace zoo::testing {

class OnAGpu : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (is_strict()) {
      // LibTorch has one accelerator at a time.
      if (torch::cuda::is_available()) GTEST_SKIP() << "a GPU is here, which is better";
      device_ = strict_device();
    } else if (!torch::cuda::is_available()) {
      GTEST_SKIP() << "no GPU";
    }
  }

  bool is_strict() const { return GetParam() == std::string_view("strict"); }
  torch::Device device() const { return device_; }
  const TinyWorld& world() const { return world_; }

  /// Few steps without randomness in the model, so that devices can be compared.
  static std::vector<std::string> exact(std::vector<std::string> more = {}) {
    for (const char* always :
         {"training.precision=fp32", "training.steps=4", "training.evaluate_every=4", "training.log_every=1",
          "training.threads=1", "model.dropout=0", "model.attention_dropout=0", "model.activation_dropout=0",
          "model.stochastic_depth=0"})
      more.insert(more.begin(), always);
    return more;
  }

  /// Trains; returns the losses of the steps and of the evaluations.
  std::vector<double> train_on(torch::Device where, std::string_view task, const std::string& name,
                               const std::vector<std::string>& overrides) const {
    return losses_of(
        train(world_.experiment(task, overrides), {.run_dir = world_.path(name), .device = where}).run_dir);
  }
  static std::vector<double> losses_of(const std::filesystem::path& run) {
    std::vector<double> result;
    for (const auto& row : timeless_metrics(run)) {
      for (const char* key : {"train_loss", "valid_loss"})
        if (row.contains(key)) result.push_back(row[key]);
    }
    return result;
  }
  /// `tolerance`: of a loss, or of 1 if that is more.
  static void expect_close(const std::vector<double>& found, const std::vector<double>& wanted,
                           double tolerance) {
    ASSERT_EQ(found.size(), wanted.size());
    ASSERT_THAT(found, ::testing::Not(::testing::IsEmpty()));
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i]))) << "number " << i;
  }
  /// Trains in fp32 on the processor and on the device, and in 16 bits on the device. The run of the
  /// processor is world().path("cpu"), unless there is a name for it.
  void expect_same_training(std::string_view task, const std::vector<std::string>& overrides,
                            const std::string& name = "cpu", double tolerance = 1e-3) const {
    const auto wanted = train_on(torch::kCPU, task, name, exact(overrides));
    expect_close(train_on(device_, task, name + "-device", exact(overrides)), wanted, tolerance);
    for (const char* const precision : {"bf16", "fp16"}) {
      SCOPED_TRACE(precision);
      auto rounded = exact(overrides);
      rounded.push_back(fmt::format("training.precision={}", precision));
      // The first steps of fp16 may be skipped, because the loss is scaled too much at first.
      const auto losses = train_on(device_, task, fmt::format("{}-{}", name, precision), rounded);
      ASSERT_EQ(losses.size(), wanted.size());
      EXPECT_NEAR(losses.front(), wanted.front(), 0.05 * std::max(1.0, std::abs(wanted.front())));
      for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss));
    }
  }

 private:
  TinyWorld world_;
  torch::Device device_ = torch::Device("cuda:0");
};

inline auto both_devices() { return ::testing::Values("cuda", "strict"); }
inline std::string device_name(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace zoo::testing
