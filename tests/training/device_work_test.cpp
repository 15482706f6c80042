// What a training step asks of a GPU, counted on the strict device. Counts do not depend on widths, so a
// small model of GPT-2's depth has the counts of GPT-2.

#include "tests/support/device_work.h"

#include <iostream>
#include <string_view>

#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include "base/transfer.h"
#include "tests/support/strict_kernels.h"
#include "tests/training/on_a_gpu.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

class DeviceWorkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (torch::cuda::is_available()) GTEST_SKIP() << "LibTorch has one accelerator at a time";
    device_ = strict_device();
  }

  /// The work of a training's last step but one, with all that the trainer does beside it.
  DeviceWork step_of(std::vector<std::string> overrides) const {
    for (const char* always :
         {"training.evaluate_every=100", "training.checkpoint_every=100", "training.steps=8",
          "training.log_every=100", "training.gradient_accumulation=1"})
      overrides.insert(overrides.begin(), always);
    std::vector<DeviceWork> after;
    train(world_.experiment("language_modeling", overrides),
          {.run_dir = world_.path("run"),
           .existing = ExistingRun::replace,
           .device = device_,
           .on_progress = [&](const TrainProgress& progress) {
             if (progress.message.empty()) {
               after.push_back(strict_device_work());
             } else if (progress.message.find("cuda_graphs") != std::string::npos) {
               std::cout << progress.message << "\n";
             }
           }});
    // The last reports are those of the last step and of the evaluation after it.
    return after.at(6).since(after.at(5));
  }

  TinyWorld world_;
  torch::Device device_ = torch::kCPU;
};

TEST_F(DeviceWorkTest, CountsKernelsCopiesAndWaits) {
  const auto x = torch::ones({4, 4}, device_), y = torch::ones({4, 4}, device_);
  const auto numbers = [](const DeviceWork& work) {
    return std::vector{work.kernels, work.launches, work.uploads, work.downloads, work.waits};
  };
  const auto of = [&](const auto& body) { return numbers(work_of(body)); };
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(of([&] { x.mm(y).add_(1); }), (Numbers{2, 2, 0, 0, 0}));
  EXPECT_EQ(of([&] { x.t().narrow(0, 1, 2).unsqueeze(0).detach(); }), (Numbers{0, 0, 0, 0, 0})) << "views";
  EXPECT_EQ(of([&] { torch::empty({3}, device_); }), (Numbers{0, 0, 0, 0, 0}));
  EXPECT_EQ(of([&] { x.t().contiguous(); }), (Numbers{1, 1, 0, 0, 0})) << "a copy on the device is a kernel";
  EXPECT_EQ(of([&] { x.sum().item<float>(); }), (Numbers{1, 1, 0, 1, 1}));
  EXPECT_EQ(of([&] { x.to(torch::kCPU); }), (Numbers{0, 0, 0, 1, 1}));
  EXPECT_EQ(of([&] { torch::ones({2}).to(device_); }), (Numbers{0, 0, 1, 0, 1}));
  EXPECT_EQ(of([&] { torch::ones({2}).to(device_, /*non_blocking=*/true); }), (Numbers{0, 0, 1, 0, 1}))
      << "memory that is not pinned";
  EXPECT_EQ(of([&] { torch::ones({2}).pin_memory().to(device_, /*non_blocking=*/true); }),
            (Numbers{0, 0, 1, 0, 0}));
  EXPECT_EQ(of([&] { sent(torch::ones({2}), device_); }), (Numbers{0, 0, 1, 0, 0}));
  EXPECT_EQ(of([&] { send(torch::ones({4}), x[1]); }), (Numbers{0, 0, 1, 0, 0}));
  EXPECT_EQ(of([&] { torch::nonzero(x); }), (Numbers{1, 1, 0, 0, 1}));
  EXPECT_EQ(of([&] { x.index({x > 0}); }).back(), 1) << "a size to wait for";
  EXPECT_EQ(of([&] { at::_foreach_add_({x, y}, 1); }), (Numbers{1, 1, 0, 0, 0}));
  const auto heads = torch::ones({1, 2, 3, 4}, device_);
  EXPECT_EQ(of([&] { at::scaled_dot_product_attention(heads, heads, heads); }), (Numbers{1, 1, 0, 0, 0}));
  EXPECT_THAT(work_of([&] { x.mm(y); }).most_frequent(), HasSubstr("1 aten::mm\n"));
}

// Fused attention on the strict device is that of the processor, for shared heads, too.
TEST_F(DeviceWorkTest, FusedAttentionHasTheRightGradients) {
  for (const bool causal : {false, true}) {
    const auto run = [&](torch::Device device) {
      torch::manual_seed(1);
      std::vector<torch::Tensor> inputs;
      for (const int64_t heads : {4, 2, 2})
        inputs.push_back(torch::randn({2, heads, 5, 8}).to(device).requires_grad_());
      const auto out = at::scaled_dot_product_attention(inputs[0], inputs[1], inputs[2], {}, 0, causal, 0.3,
                                                        /*enable_gqa=*/true);
      auto results = torch::autograd::grad({(out * out).sum()}, inputs);
      results.push_back(out.detach());
      return results;
    };
    const auto wanted = run(torch::kCPU), found = run(device_);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(torch::allclose(found[i].to(torch::kCPU), wanted[i], 1e-4, 1e-5)) << i;
  }
}

TEST_F(DeviceWorkTest, OfATrainingStep) {
  const std::vector<std::string> gpt2 = {"model.n_layers=12", "model.dropout=0", "training.precision=bf16"};
  const std::vector<std::string> llama = {
      "model.n_layers=16",     "model.dropout=0",    "model.norm=rms_norm", "model.activation=swiglu",
      "model.position=rotary", "model.n_kv_heads=1", "model.bias=false",    "training.precision=bf16"};
  const auto expect_step = [&](std::string_view title, const std::vector<std::string>& overrides,
                               int64_t most_kernels) {
    const auto work = step_of(overrides);
    std::cout << title << " in bf16, a step: " << work.in_words() << "\n" << work.most_frequent();
    EXPECT_LE(work.kernels, most_kernels);
    EXPECT_LE(work.launches, 12) << "the step is recorded; the optimiser is not";
    EXPECT_EQ(work.uploads, 2) << "token ids and targets";
    EXPECT_EQ(work.downloads, 1) << "losses and norm";
    // For the numbers of the step before.
    EXPECT_EQ(work.waits, 1);
    EXPECT_EQ(work.by_operation.at("wait event"), 1);
  };
  expect_step("GPT-2 with 12 layers", gpt2, 800);
  expect_step("Llama with 16 layers", llama, 1950);
  {
    const StrictKernels kernels;
    expect_step("GPT-2 with 12 layers and our kernels", gpt2, 680);
    expect_step("Llama with 16 layers and our kernels", llama, 800);
    auto dropping = gpt2;
    dropping[1] = "model.dropout=0.1";
    expect_step("GPT-2 with 12 layers, dropout and our kernels", dropping, 710);
  }
  auto plain = gpt2;
  plain.emplace_back("training.cuda_graphs=false");
  const auto work = step_of(plain);
  EXPECT_EQ(work.launches, work.kernels);
  EXPECT_EQ(work.waits, 1);
}

}  // namespace
}  // namespace zoo::testing
