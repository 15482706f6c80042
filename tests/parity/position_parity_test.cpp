// Positions against transformers: rotary (Llama, GPT-J), ALiBi (Bloom, MPT), T5's buckets; sinusoids by their
// formula.

#include <fmt/format.h>

#include "layers/attention/attention.h"
#include "layers/attention/position_bias.h"
#include "layers/attention/positions.h"
#include "layers/attention/rotary.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

class PositionParity : public ReferenceTest {
 protected:
  PositionParity() : ReferenceTest("reference_layers.py") {}
};

constexpr int64_t kHeadDim = 16, kPositions = 40;

TEST_F(PositionParity, RotaryHalfInAllScalings) {
  const auto base = RotaryOptions(kHeadDim).original_max_positions(64);
  const std::vector<std::pair<std::string, RotaryOptions>> scalings{
      {"none", base},
      {"linear", RotaryOptions(base).scaling(RotaryScaling::linear).factor(4)},
      {"ntk", RotaryOptions(base).scaling(RotaryScaling::ntk).factor(4)},
      {"yarn", RotaryOptions(base).scaling(RotaryScaling::yarn).factor(4)},
      {"yarn_options", RotaryOptions(base)
                           .scaling(RotaryScaling::yarn)
                           .factor(8)
                           .beta_fast(8)
                           .beta_slow(2)
                           .attention_factor(1.3)},
      {"llama3", RotaryOptions(base).scaling(RotaryScaling::llama3).factor(8)},
  };
  for (const auto& [name, options] : scalings) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file("rotary_half_" + name));
    const auto rates = rotary_rates(options);
    EXPECT_TRUE(torch::allclose(rates, reference.output("rates"), /*rtol=*/2e-6, /*atol=*/0)) << rates;
    const auto table = Rotary(options)(PositionRange(0, kPositions), torch::kCPU);
    const auto q = table.apply(reference.input("q")), k = table.apply(reference.input("k"));
    reference.expect_output("q", q);
    reference.expect_output("k", k);
    reference.backward({{"q", q}, {"k", k}});
    reference.expect_gradients();
  }
}

TEST_F(PositionParity, RotaryInterleavedAndPartial) {
  for (const int64_t width : {kHeadDim, int64_t{8}}) {
    ReferenceCase reference(file(fmt::format("rotary_interleaved_{}", width)));
    Rotary rotary(RotaryOptions(kHeadDim).width(width).layout(RotaryLayout::interleaved));
    const auto table = rotary(PositionRange(0, kPositions), torch::kCPU);
    const auto y = table.apply(reference.input("x").transpose(1, 2)).transpose(1, 2);
    reference.expect_output("y", y);
    reference.backward({{"y", y}});
    reference.expect_gradients();
  }
}

TEST_F(PositionParity, AlibiSlopesAndBias) {
  const ReferenceCase reference(file("alibi"));
  for (const int64_t n_heads : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20}) {
    SCOPED_TRACE(n_heads);
    const auto slopes = alibi_slopes(n_heads);
    const auto bloom =
        reference.output(fmt::format("bloom_{}", n_heads));             // (H, S): slope times key position
    const auto mpt = reference.output(fmt::format("mpt_{}", n_heads));  // (H, S): of the last query
    const int64_t n = bloom.size(1);
    EXPECT_TRUE(torch::allclose(slopes, bloom.select(1, 1), 1e-6, 0));
    const auto bias = alibi_bias(slopes, PositionRange(0, n));
    EXPECT_TRUE(torch::allclose(bias[0].select(1, n - 1), mpt, 1e-6, 0));
    for (int64_t i = 0; i < n;
         ++i) {  // Bloom's rows differ from ours by a constant, which softmax does not see
      const auto ours = bias[0].select(1, i).narrow(1, 0, i + 1), theirs = bloom.narrow(1, 0, i + 1);
      EXPECT_TRUE(torch::allclose(ours - ours.narrow(1, 0, 1), theirs, 1e-6, 1e-6));
    }
  }
}

TEST_F(PositionParity, T5Buckets) {
  ReferenceCase reference(file("t5_buckets"));
  const auto distances = reference.input("distances");
  for (const auto& [n_buckets, reach] : {std::pair{32, 128}, {8, 20}, {6, 50}}) {
    const auto suffix = fmt::format("_{}_{}", n_buckets, reach);
    EXPECT_TRUE(torch::equal(t5_buckets(distances, Direction::causal, n_buckets, reach),
                             reference.output("causal" + suffix)));
    EXPECT_TRUE(torch::equal(t5_buckets(distances, Direction::bidirectional, n_buckets, reach),
                             reference.output("both" + suffix)));
  }
}

class T5Attention : public torch::nn::Module {
 public:
  explicit T5Attention(Direction direction) {
    attention = register_module(
        "attention",
        Attention(AttentionOptions(12, 3).head_dim(4).qkv_bias(false).out_bias(false).scale(1.0)));
    bias =
        register_module("bias", T5Bias(T5BiasOptions(3).direction(direction).n_buckets(8).max_distance(20)));
  }
  Attention attention{nullptr};
  T5Bias bias{nullptr};
};

TEST_F(PositionParity, T5AttentionInBothDirections) {
  for (const auto direction : {Direction::bidirectional, Direction::causal}) {
    const bool causal = direction == Direction::causal;
    SCOPED_TRACE(causal);
    ReferenceCase reference(file(causal ? "t5_attention_decoder" : "t5_attention_encoder"));
    T5Attention module(direction);
    reference.load(module);
    const auto x = reference.input("x");
    const auto bias = module.bias(PositionRange(0, x.size(1)));
    reference.expect_output("bias", bias);
    const auto y = module.attention(x, {.mask = causal ? Mask::causal() : Mask(), .bias = bias});
    reference.expect_output("y", y);
    reference.backward({{"y", y}});
    reference.expect_gradients(&module);
  }
}

TEST_F(PositionParity, SinusoidsByBothFormulas) {
  ReferenceCase reference(file("sinusoidal"));
  const auto positions = reference.input("positions");
  for (const int64_t width : {1, 2, 7, 16, 33}) {
    const auto encoding = sinusoidal_positions(positions, width);
    reference.expect_output(fmt::format("power_{}", width), encoding);
    reference.expect_output(fmt::format("exp_log_{}", width), encoding);
  }
}

}  // namespace
}  // namespace zoo::testing
