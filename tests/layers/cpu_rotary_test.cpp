#include "kernels/cpu_rotary.h"

#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/rotary.h"

namespace zoo {
namespace {

struct RotaryCase {
  RotaryLayout layout;
  int64_t head_dim, width;
  bool differs_by_row;
};

/// The rotated heads and the gradient of the projection that they come from. float64 uses no kernel of ours.
std::vector<torch::Tensor> rotated_and_gradient(const RotaryCase& c, torch::ScalarType type) {
  torch::manual_seed(1);
  constexpr int64_t batch = 3, length = 7, n_heads = 2;
  Rotary rotary(RotaryOptions(c.head_dim).width(c.width).layout(c.layout));
  const std::vector<int64_t> before{5, 1, 3}, counts{length, length - 3, length};
  const auto range =
      c.differs_by_row ? PositionRange(before, counts, length, torch::kCPU) : PositionRange(5, length);
  const auto table = rotary(range, torch::kCPU);
  // As in a fused projection, the rows of a head lie far apart.
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
    for (const bool differs_by_row : {false, true}) {
      for (const auto& [head_dim, width] : {std::pair{64, 64}, {64, 24}, {6, 2}, {40, 38}}) {
        SCOPED_TRACE(::testing::Message() << head_dim << " " << width << " " << differs_by_row);
        const RotaryCase c{layout, head_dim, width, differs_by_row};
        const auto ours = rotated_and_gradient(c, torch::kFloat);
        const auto exact = rotated_and_gradient(c, torch::kDouble);
        for (size_t i = 0; i < ours.size(); ++i)
          EXPECT_TRUE(torch::allclose(ours[i].to(torch::kDouble), exact[i], 0, 1e-6)) << i;
      }
    }
  }
}

TEST(CpuRotary, KeepsTheOrderInMemory) {
  Rotary rotary(RotaryOptions(8));
  const auto table = rotary(PositionRange(0, 5), torch::kCPU);
  const auto heads = torch::randn({2, 5, 3, 8}).transpose(1, 2);
  EXPECT_EQ(table.apply(heads).strides(), heads.strides());
  EXPECT_TRUE(torch::equal(table.apply(heads), table.apply(heads.contiguous())));
}

}  // namespace
}  // namespace zoo
