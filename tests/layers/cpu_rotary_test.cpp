#include "layers/kernels/cpu_rotary.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/positions/rotary.h"

namespace zoo {
namespace {

struct RotaryCase {
  RotaryLayout layout;
  int64_t head_dim, width;
  bool left_padded;
};

/// The turned heads and the gradient of what they are made from. In float64 no kernel of ours is used.
std::vector<torch::Tensor> turned_and_gradient(const RotaryCase& c, torch::ScalarType type) {
  torch::manual_seed(1);
  constexpr int64_t batch = 3, length = 7, n_heads = 2;
  Rotary rotary(RotaryOptions(c.head_dim).width(c.width).layout(c.layout));
  PositionRange range{.first = 5, .count = length, .starts = {}};
  if (c.left_padded) range.starts = torch::tensor({0, 4, 2}, torch::kLong);
  const auto table = rotary(range, torch::kCPU);
  // As a fused projection gives them: rows of a head lie far apart.
  const auto projected = torch::randn({batch, length, 3 * n_heads * c.head_dim}).to(type).requires_grad_();
  const auto heads = projected.narrow(-1, n_heads * c.head_dim, n_heads * c.head_dim)
                         .view({batch, length, n_heads, c.head_dim})
                         .transpose(1, 2);
  EXPECT_EQ(has_cpu_rotary(heads, table), type == torch::kFloat);
  const auto y = table.apply(heads);
  (y * torch::randn(y.sizes()).to(type)).sum().backward();
  return {y.detach(), projected.grad()};
}

TEST(CpuRotary, IsTheCompositionOfTorchsOperations) {
  for (const auto layout : {RotaryLayout::half, RotaryLayout::interleaved}) {
    for (const bool left_padded : {false, true}) {
      for (const auto& [head_dim, width] : {std::pair{64, 64}, {64, 24}, {6, 2}, {40, 38}}) {
        SCOPED_TRACE(::testing::Message() << head_dim << " " << width << " " << left_padded);
        const RotaryCase c{layout, head_dim, width, left_padded};
        const auto ours = turned_and_gradient(c, torch::kFloat);
        const auto exact = turned_and_gradient(c, torch::kDouble);
        for (size_t i = 0; i < ours.size(); ++i)
          EXPECT_TRUE(torch::allclose(ours[i].to(torch::kDouble), exact[i], 0, 1e-6)) << i;
      }
    }
  }
}

TEST(CpuRotary, KeepsTheOrderInMemory) {
  Rotary rotary(RotaryOptions(8));
  const auto table = rotary(PositionRange{.first = 0, .count = 5, .starts = {}}, torch::kCPU);
  const auto heads = torch::randn({2, 5, 3, 8}).transpose(1, 2);
  EXPECT_EQ(table.apply(heads).strides(), heads.strides());
  EXPECT_TRUE(torch::equal(table.apply(heads), table.apply(heads.contiguous())));
}

}  // namespace
}  // namespace zoo
