// Attention against torch.nn.MultiheadAttention, and where that has no counterpart against explicit loops.

#include <functional>
#include <memory>
#include <string>

#include "layers/attention/attention.h"
#include "layers/attention/kinds/shaw_attention.h"
#include "layers/attention/scaled_dot_product.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

class AttentionParity : public ReferenceTest {
 protected:
  AttentionParity() : ReferenceTest("reference_layers.py") {}

  // Both paths, forwards and backwards.
  void check(const std::string& name, const AttentionOptions& options, const Mask& base = {}) {
    check_module(name, [&] { return Attention(options); }, base);
  }
  void check_module(const std::string& name, const std::function<Attention()>& make, const Mask& base = {}) {
    for (const bool explicit_path : {false, true}) {
      SCOPED_TRACE(name + (explicit_path ? ", explicit" : ", fused"));
      ReferenceCase reference(file(name));
      Attention attention = make();
      reference.load(*attention);
      const auto inputs = reference.names("input/");
      const auto has = [&](const char* input) {
        return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
      };
      const auto x = reference.input("x");
      AttentionContext context{.mask = base};
      if (has("memory")) context.memory = reference.input("memory");
      if (has("lengths")) context.mask = base & Mask::lengths(reference.input("lengths"));
      std::vector<torch::Tensor> maps;
      if (explicit_path) context.maps = &maps;

      const auto y = attention(x, context);
      reference.expect_output("y", y);
      const auto outputs = reference.names("output/");
      if (explicit_path && std::find(outputs.begin(), outputs.end(), "weights") != outputs.end()) {
        ASSERT_EQ(maps.size(), 1U);
        reference.expect_output("weights", maps[0]);
      }
      reference.backward({{"y", y}});
      reference.expect_gradients(attention.get());
    }
  }
};

const AttentionOptions kSeparate(12, 3);
const auto kFused = AttentionOptions(12, 3).projection(Projection::fused);

TEST_F(AttentionParity, SelfAttention) {
  check("attention_self", kSeparate);
  check("attention_self_fused", kFused);
}

TEST_F(AttentionParity, Causal) { check("attention_causal", kSeparate, Mask::causal()); }

TEST_F(AttentionParity, Padding) {
  check("attention_padding", kSeparate);
  check("attention_causal_padding", kFused, Mask::causal());
}

TEST_F(AttentionParity, CrossAttention) {
  check("attention_cross", kSeparate);
  check("attention_cross_fused", kFused);
  check("attention_cross_padding", kSeparate);
}

TEST_F(AttentionParity, GroupedAndMultiQuery) {
  const auto options = AttentionOptions(12, 6).head_dim(4).qkv_bias(false).out_bias(false);
  check("attention_grouped", AttentionOptions(options).n_kv_heads(2), Mask::causal());
  check("attention_multi_query", AttentionOptions(options).n_kv_heads(1), Mask::causal());
}

TEST_F(AttentionParity, ClippedGatedAndWithSinks) {
  const auto options = AttentionOptions(12, 6).head_dim(4).qkv_bias(false).out_bias(false);
  check("attention_clipped", AttentionOptions(options).n_kv_heads(3).qkv_clip(0.4), Mask::causal());
  check("attention_gated", AttentionOptions(options).n_kv_heads(2).gate(true), Mask::causal());
  check("attention_sinks", AttentionOptions(options).n_kv_heads(2).sinks(true), Mask::causal());
  check("attention_each_head",
        AttentionOptions(options)
            .n_kv_heads(3)
            .qk_norm(NormOptions(4).bias(false))
            .qk_norm_width(QkNormWidth::each_head),
        Mask::causal());
}

TEST_F(AttentionParity, ShawRelativePositions) {
  const auto make = [] {
    return Attention(
        std::shared_ptr<AttentionImpl>(std::make_shared<ShawAttentionImpl>(AttentionOptions(12, 2), 3)));
  };
  check_module("attention_shaw", make);
  check_module("attention_shaw_causal", make, Mask::causal());
}

TEST_F(AttentionParity, ScaledDotProductWithValuesOfAnotherWidth) {
  for (const bool explicit_path : {false, true}) {
    ReferenceCase reference(file("scaled_dot_product"));
    const auto q = reference.input("q"), k = reference.input("k"), v = reference.input("v");
    const ScaledDotProductOptions options{
        .mask = Mask::keep(reference.input("keep")), .bias = reference.input("bias"), .scale = std::nullopt};
    torch::Tensor y;
    if (explicit_path) {
      const auto result = explicit_attention(q, k, v, options);
      reference.expect_output("weights", result.weights);
      y = result.output;
    } else {
      y = fused_attention(q, k, v, options);
    }
    reference.expect_output("y", y);
    reference.backward({{"y", y}});
    reference.expect_gradients();
  }
}

}  // namespace
}  // namespace zoo::testing
