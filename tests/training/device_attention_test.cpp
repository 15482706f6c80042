// Attention on a GPU over rows of different lengths and over windows, without a tensor of pairs.

#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include "kernels/flash_attention.h"
#include "layers/attention/pattern_attention.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/attention/window_pattern.h"
#include "tests/support/device_work.h"
#include "tests/training/on_a_gpu.h"

namespace zoo::testing {
namespace {

using Tensors = std::vector<torch::Tensor>;

class AttentionOnAGpu : public OnAGpu {
 protected:
  static double norm_of(const torch::Tensor& tensor) { return tensor.norm().item<double>(); }
  /// Output and gradients of a call on two devices: in fp32 on the processor, in bf16 on the other one.
  /// `lengths`: of rows; what queries behind them get does not count.
  template <class Call>
  void expect_same(const Call& call, int64_t n_queries, int64_t n_keys,
                   const torch::Tensor& lengths = {}) const {
    torch::manual_seed(4);
    Tensors inputs;
    for (const auto& [heads, n] : {std::pair(int64_t{4}, n_queries), {2, n_keys}, {2, n_keys}})
      inputs.push_back(torch::randn({3, heads, n, 16}).to(torch::kBFloat16));
    auto counted = torch::ones({3, 1, n_queries, 1}, torch::kBool);
    if (lengths.defined() && n_queries == n_keys)
      counted = torch::arange(n_queries).view({1, 1, -1, 1}) < lengths.view({-1, 1, 1, 1});
    const auto run = [&](torch::Device where, torch::ScalarType type) {
      Tensors leaves;
      for (const auto& input : inputs) leaves.push_back(input.to(where, type).requires_grad_());
      const auto out = call(leaves[0], leaves[1], leaves[2], lengths.defined() ? lengths.to(where) : lengths);
      const auto kept = torch::where(counted.to(where), out.to(torch::kFloat), torch::zeros({}, where));
      auto results = torch::autograd::grad({kept.square().sum()}, leaves);
      results.push_back(kept.detach());
      for (auto& result : results) result = result.to(torch::kCPU, torch::kFloat);
      return results;
    };
    const auto wanted = run(torch::kCPU, torch::kFloat), found = run(device(), torch::kBFloat16);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_LE(norm_of(found[i] - wanted[i]), 0.02 * norm_of(wanted[i])) << i;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, AttentionOnAGpu, both_devices(), device_name);

TEST_P(AttentionOnAGpu, RowsOfDifferentLengths) {
  const auto lengths = torch::tensor({9, 4, 1}, torch::kLong);
  for (const bool causal : {false, true}) {
    SCOPED_TRACE(causal);
    const auto call = [&](const auto& q, const auto& k, const auto& v, const auto& ends) {
      const auto mask = Mask::lengths(ends);
      return fused_attention(q, k, v, {.mask = causal ? mask & Mask::causal() : mask, .scale = 0.3});
    };
    expect_same(call, 9, 9, lengths);
    if (!causal) expect_same(call, 5, 9, lengths);  // cross-attention
  }
}

// The last query is aligned with the last key: new tokens see all that came before them.
TEST_P(AttentionOnAGpu, QueriesAtTheEndOfTheirKeys) {
  const auto lengths = torch::tensor({9, 7, 6}, torch::kLong);
  for (const bool has_lengths : {false, true}) {
    SCOPED_TRACE(has_lengths);
    const auto call = [&](const auto& q, const auto& k, const auto& v, const auto& ends) {
      return fused_attention(q, k, v, {.mask = Mask::lengths(ends) & Mask::causal(), .scale = 0.3});
    };
    expect_same(call, 5, 9, has_lengths ? lengths : torch::Tensor());
  }
}

TEST_P(AttentionOnAGpu, Windows) {
  const auto lengths = torch::tensor({11, 6, 2}, torch::kLong);
  for (const auto direction : {Direction::causal, Direction::bidirectional}) {
    for (const bool has_lengths : {false, true}) {
      SCOPED_TRACE(fmt::format("{}, lengths {}", direction == Direction::causal, has_lengths));
      const WindowPattern pattern(direction, WindowOptions().size(3));
      const auto call = [&](const auto& q, const auto& k, const auto& v, const auto& ends) {
        auto mask = Mask::lengths(ends);
        if (direction == Direction::causal) mask = mask & Mask::causal();
        return pattern_attention(q, k, v, {.pattern = pattern, .mask = mask, .scale = 0.3});
      };
      expect_same(call, 11, 11, has_lengths ? lengths : torch::Tensor());
    }
  }
}

TEST_P(AttentionOnAGpu, NeedsNoTensorOfPairs) {
  if (!is_strict()) GTEST_SKIP() << "only the strict device counts";
  const auto x = torch::randn({3, 2, 9, 16}).to(torch::kBFloat16).to(device());
  ASSERT_TRUE(has_flash_attention(x, x, x));
  const auto lengths = torch::tensor({9, 4, 1}, torch::kLong).to(device());
  const WindowPattern pattern(Direction::causal, WindowOptions().size(3));
  const auto padded =
      work_of([&] { fused_attention(x, x, x, {.mask = Mask::lengths(lengths), .scale = 0.3}); });
  const auto window = work_of(
      [&] { pattern_attention(x, x, x, {.pattern = pattern, .mask = Mask::causal(), .scale = 0.3}); });
  for (const auto& work : {padded, window}) {
    EXPECT_EQ(work.by_operation.at("aten::_flash_attention_forward"), 1);
    EXPECT_FALSE(work.by_operation.contains("aten::where")) << work.most_frequent();
    EXPECT_EQ(work.waits, 0);
  }
  const auto causal = work_of(
      [&] { fused_attention(x, x, x, {.mask = Mask::lengths(lengths) & Mask::causal(), .scale = 0.3}); });
  EXPECT_EQ(causal.kernels, 1) << causal.most_frequent();
}

// Without its 16 bits, or with heads of another width, attention has a mask as before.
TEST_P(AttentionOnAGpu, IsOnlyForWhatItsKernelsTake) {
  const auto of = [&](torch::ScalarType type, int64_t width) {
    const auto x = torch::zeros({1, 2, 3, width}, type).to(device());
    return has_flash_attention(x, x, x);
  };
  EXPECT_FALSE(of(torch::kFloat, 16));
  EXPECT_FALSE(of(torch::kBFloat16, 12));
  EXPECT_FALSE(of(torch::kBFloat16, 264));
  const auto here = torch::zeros({1, 2, 3, 16}, torch::kBFloat16);
  EXPECT_FALSE(has_flash_attention(here, here, here));
}

}  // namespace
}  // namespace zoo::testing
