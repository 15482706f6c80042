#include "kernels/swiglu.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

namespace zoo {
namespace {

/// Output and gradients. float64 uses no kernel of ours.
std::vector<torch::Tensor> swiglu_and_gradients(bool fused, int64_t width, torch::ScalarType type) {
  torch::manual_seed(1);
  std::vector<torch::Tensor> inputs;
  for (const int64_t n : fused ? std::vector{2 * width} : std::vector{width, width})
    inputs.push_back((torch::randn({3, 7, n}) * 8).to(type).requires_grad_());
  const auto y = fused ? swiglu(inputs[0]) : swiglu(inputs[0], inputs[1]);
  (y * torch::randn(y.sizes()).to(type)).sum().backward();
  std::vector<torch::Tensor> result = {y.detach()};
  for (const auto& input : inputs) result.push_back(input.grad());
  return result;
}

TEST(Swiglu, IsSiluOfTheGateTimesUp) {
  for (const bool fused : {false, true}) {
    for (const int64_t width : {1, 16, 50, 3000}) {
      SCOPED_TRACE(::testing::Message() << fused << " " << width);
      const auto ours = swiglu_and_gradients(fused, width, torch::kFloat);
      const auto exact = swiglu_and_gradients(fused, width, torch::kDouble);
      ASSERT_EQ(ours.size(), exact.size());
      for (size_t i = 0; i < ours.size(); ++i)
        EXPECT_TRUE(torch::allclose(ours[i].to(torch::kDouble), exact[i], 2e-6, 1e-6)) << i;
    }
  }
}

TEST(Swiglu, StaysFiniteFarOut) {
  const auto gate = torch::tensor({-1e30F, -200.F, -90.F, 0.F, 90.F, 200.F}).requires_grad_();
  const auto y = swiglu(gate, torch::ones({6}));
  EXPECT_TRUE(torch::allclose(y, torch::tensor({0.F, 0.F, 0.F, 0.F, 90.F, 200.F}), 0, 1e-6));
  y.sum().backward();
  EXPECT_TRUE(torch::allclose(gate.grad(), torch::tensor({0.F, 0.F, 0.F, 0.5F, 1.F, 1.F}), 0, 1e-6));
}

TEST(Swiglu, GateAndUpAreOfOneShape) {
  const auto gate = torch::randn({3, 8}), up = torch::randn({1, 8});
  // LibTorch broadcasts other shapes.
  EXPECT_TRUE(torch::allclose(swiglu(gate, up), torch::silu(gate) * up, 1e-5, 1e-6));
  EXPECT_THROW(swiglu(gate, torch::randn({3, 7})), c10::Error);
  EXPECT_THROW(swiglu(torch::randn({3, 7})), c10::Error);
}

TEST(Swiglu, KeepsWhatIsNotANumber) {
  const auto nan = torch::full({4}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(swiglu(nan, torch::ones({4})).isnan().all().item<bool>());
}

}  // namespace
}  // namespace zoo
