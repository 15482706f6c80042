#include "layers/attention.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/positions/position_bias.h"

namespace zoo {
namespace {

constexpr int64_t kTexts = 2, kTokens = 9, kModel = 24, kHeads = 4;

AttentionOptions base() { return {kModel, kHeads}; }

// Every variant of the module.
std::vector<std::pair<std::string, AttentionOptions>> variants() {
  return {{"separate", base()},
          {"fused", base().projection(Projection::fused).qkv_bias(false)},
          {"grouped", base().n_kv_heads(2)},
          {"multi-query, fused", base().n_kv_heads(1).projection(Projection::fused)},
          {"one head", AttentionOptions(kModel, 1)},
          {"head_dim", base().head_dim(10).scale(1.0)},
          {"qk_norm", base().qk_norm(NormOptions(6).kind(NormKind::rms_norm))},
          {"shaw", base().shaw_max_distance(3)},
          {"shaw, grouped", base().shaw_max_distance(3).n_kv_heads(2)}};
}

// What a stack hands to its layers for one way of knowing positions.
struct PositionKind {
  std::string name;
  std::function<torch::Tensor(const PositionRange&)> bias;
  std::function<RotaryTable(const PositionRange&)> rotary;
};

std::vector<PositionKind> position_kinds() {
  torch::manual_seed(11);
  T5Bias t5(T5BiasOptions(kHeads).direction(Direction::causal).n_buckets(8).max_distance(20));
  const auto rotary = [](RotaryLayout layout) {
    return [module = Rotary(RotaryOptions(6).layout(layout))](const PositionRange& range) mutable {
      return module(range, torch::kCPU);
    };
  };
  return {
      {"none", nullptr, nullptr},
      {"alibi", [](const PositionRange& range) { return alibi_bias(alibi_slopes(kHeads), range); }, nullptr},
      {"t5", [t5](const PositionRange& range) mutable { return t5(range).detach(); }, nullptr},
      {"rotary", nullptr, rotary(RotaryLayout::half)},
      {"rotary interleaved", nullptr, rotary(RotaryLayout::interleaved)}};
}

// Runs a block of tokens that begins at `first`.
torch::Tensor run(Attention& attention, const torch::Tensor& x, const PositionKind& kind, int64_t first,
                  KeyValues* cache, std::vector<torch::Tensor>* maps = nullptr) {
  const PositionRange range{.first = first, .count = x.size(1), .starts = {}};
  const auto table = kind.rotary ? kind.rotary(range) : RotaryTable{};
  AttentionContext context{.mask = Mask::causal()};
  context.cache = cache;
  context.maps = maps;
  if (kind.rotary) context.rotary = &table;
  if (kind.bias) context.bias = kind.bias(range);
  return attention(x, context);
}

// Calls `check` with every variant and every kind of positions that fits it.
void for_each_attention(const std::function<void(Attention&, const PositionKind&)>& check) {
  for (const auto& [name, options] : variants()) {
    for (const auto& kind : position_kinds()) {
      Attention attention(options);
      if (kind.rotary && attention->head_dim() != 6) continue;
      if (kind.bias && options.n_heads() != kHeads) continue;
      SCOPED_TRACE(name + ", " + kind.name);
      check(attention, kind);
    }
  }
}

TEST(Attention, AskingForWeightsChangesNothing) {
  torch::manual_seed(1);
  for_each_attention([&](Attention& attention, const PositionKind& kind) {
    const auto x = torch::randn({kTexts, kTokens, kModel});
    std::vector<torch::Tensor> maps;
    const auto fused = run(attention, x, kind, 0, nullptr),
               stepwise = run(attention, x, kind, 0, nullptr, &maps);
    EXPECT_TRUE(torch::allclose(fused, stepwise, 1e-5, 1e-6));
    ASSERT_EQ(maps.size(), 1U);
    EXPECT_EQ(maps[0].sizes(), (torch::IntArrayRef{kTexts, attention->options.n_heads(), kTokens, kTokens}));
    EXPECT_TRUE(torch::allclose(maps[0].sum(-1), torch::ones({kTexts, attention->options.n_heads(), kTokens}),
                                0, 1e-5));
  });
}

// Token by token, in uneven blocks, and all at once: the same.
TEST(Attention, CachedEqualsUncachedForEveryPositionKind) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  const std::vector<std::vector<int64_t>> splits{{1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 1, 3, 1}};
  for_each_attention([&](Attention& attention, const PositionKind& kind) {
    const auto x = torch::randn({kTexts, kTokens, kModel});
    const auto whole = run(attention, x, kind, 0, nullptr);
    for (const auto& blocks : splits) {
      KeyValues cache;
      std::vector<torch::Tensor> pieces;
      for (const int64_t n : blocks) {
        const int64_t first = cache.length();
        pieces.push_back(run(attention, x.narrow(1, first, n), kind, first, &cache));
      }
      EXPECT_TRUE(torch::allclose(torch::cat(pieces, 1), whole, 1e-5, 1e-5));
    }
  });
}

TEST(Attention, CausalityIsExact) {
  torch::manual_seed(3);
  for_each_attention([&](Attention& attention, const PositionKind& kind) {
    const auto x = torch::randn({kTexts, kTokens, kModel});
    auto changed = x.clone();
    changed.narrow(1, 5, 4).normal_(0, 100);
    const auto a = run(attention, x, kind, 0, nullptr), b = run(attention, changed, kind, 0, nullptr);
    EXPECT_TRUE(torch::equal(a.narrow(1, 0, 5), b.narrow(1, 0, 5)));  // to the last bit
    EXPECT_FALSE(torch::equal(a.narrow(1, 5, 1), b.narrow(1, 5, 1)));
  });
}

TEST(Attention, HasFourSquareMatricesWhateverTheNumberOfHeads) {
  for (const auto projection : {Projection::separate, Projection::fused}) {
    for (const int64_t n_heads : {1, 2, 4, 8}) {
      Attention attention(
          AttentionOptions(kModel, n_heads).projection(projection).qkv_bias(false).out_bias(false));
      int64_t n = 0;
      for (const auto& parameter : attention->parameters()) n += parameter.numel();
      EXPECT_EQ(n, 4 * kModel * kModel);
    }
  }
}

TEST(Attention, RejectsHeadsThatDoNotDivideTheWidth) {
  const auto message = [](const AttentionOptions& options) -> std::string {
    try {
      Attention attention(options);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  EXPECT_EQ(message(AttentionOptions(10, 3)), "d_model 10 is not a multiple of n_heads 3");
  EXPECT_EQ(message(AttentionOptions(12, 6).n_kv_heads(4)), "n_heads 6 is not a multiple of n_kv_heads 4");
  EXPECT_EQ(message(AttentionOptions(10, 3).head_dim(4)), "");
}

TEST(Attention, EqualsHeadsSlicedByHandAndConcatenated) {
  torch::manual_seed(4);
  Attention attention(base());
  const int64_t width = kModel / kHeads;
  const auto x = torch::randn({kTexts, kTokens, kModel});
  std::vector<torch::Tensor> heads;
  for (int64_t h = 0; h < kHeads; ++h) {
    const auto part = [&](const torch::nn::Linear& linear) {
      return torch::linear(x, linear->weight.narrow(0, h * width, width),
                           linear->bias.narrow(0, h * width, width));
    };
    const auto scores = torch::matmul(part(attention->q), part(attention->k).transpose(1, 2));
    heads.push_back(torch::matmul((scores / std::sqrt(double(width))).softmax(-1), part(attention->v)));
  }
  EXPECT_TRUE(torch::allclose(attention(x), attention->out(torch::cat(heads, -1)), 1e-5, 1e-6));
}

TEST(Attention, SeparateAndFusedProjectionsComputeTheSame) {
  torch::manual_seed(5);
  Attention separate(base().n_kv_heads(2)), fused(base().n_kv_heads(2).projection(Projection::fused));
  {
    const torch::NoGradGuard no_grad;
    fused->qkv->weight.copy_(torch::cat({separate->q->weight, separate->k->weight, separate->v->weight}));
    fused->qkv->bias.copy_(torch::cat({separate->q->bias, separate->k->bias, separate->v->bias}));
    fused->out->weight.copy_(separate->out->weight);
    fused->out->bias.copy_(separate->out->bias);
  }
  const auto x = torch::randn({kTexts, kTokens, kModel});
  const AttentionContext cross{.memory = torch::randn({kTexts, 5, kModel})};
  EXPECT_TRUE(torch::allclose(separate(x), fused(x), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(separate(x, cross), fused(x, cross), 1e-5, 1e-6));
}

TEST(Attention, CrossAttentionReadsTheMemoryOnceIntoItsCache) {
  torch::manual_seed(6);
  for (const auto projection : {Projection::separate, Projection::fused}) {
    Attention attention(base().projection(projection));
    const auto x = torch::randn({kTexts, 3, kModel});
    KeyValues cache;
    AttentionContext context;
    context.memory = torch::randn({kTexts, 5, kModel});
    const auto uncached = attention(x, context);
    context.cache = &cache;
    EXPECT_TRUE(torch::allclose(attention(x, context), uncached, 1e-5, 1e-6));
    EXPECT_EQ(cache.length(), 5);
    context.memory =
        torch::full({kTexts, 5, kModel}, std::numeric_limits<float>::quiet_NaN());  // must not be read
    EXPECT_TRUE(torch::allclose(attention(x, context), uncached, 1e-5, 1e-6));
    EXPECT_EQ(cache.length(), 5);
  }
}

TEST(Attention, GradientReachesTheMemory) {
  torch::manual_seed(7);
  Attention attention(base());
  AttentionContext context;
  context.memory = torch::randn({kTexts, 5, kModel}).requires_grad_(true);
  attention(torch::randn({kTexts, 3, kModel}), context).square().sum().backward();
  EXPECT_GT(context.memory.grad().abs().min().item<float>(), 0);
}

TEST(Attention, DropsWeightsOnlyInTraining) {
  torch::manual_seed(8);
  Attention attention(base().dropout(0.5)), without(base());
  const torch::NoGradGuard no_grad;
  for (auto& item : without->named_parameters())
    item.value().copy_(attention->named_parameters()[item.key()]);
  const auto x = torch::randn({kTexts, kTokens, kModel});
  for (const bool explicit_path : {false, true}) {
    std::vector<torch::Tensor> maps;
    AttentionContext context;
    if (explicit_path) context.maps = &maps;
    attention->eval();
    EXPECT_TRUE(torch::equal(attention(x, context), without(x, context)));
    attention->train();
    EXPECT_FALSE(torch::allclose(attention(x, context), attention(x, context)));
  }
}

// A row with padding on its left, counted from its first real token, computes what the row alone does.
TEST(Attention, LeftPaddedRowEqualsTheRowAlone) {
  torch::manual_seed(9);
  for (const auto& kind : position_kinds()) {
    SCOPED_TRACE(kind.name);
    Attention attention(base());
    const int64_t padding = 4;
    const auto x = torch::randn({1, kTokens, kModel});
    const auto alone = run(attention, x.narrow(1, padding, kTokens - padding), kind, 0, nullptr);

    const PositionRange range{.first = 0, .count = kTokens, .starts = torch::tensor({padding})};
    const auto table = kind.rotary ? kind.rotary(range) : RotaryTable{};
    AttentionContext context{.mask = Mask::causal() & Mask::starts(range.starts)};
    if (kind.rotary) context.rotary = &table;
    if (kind.bias) context.bias = kind.bias(range);
    const auto padded = attention(x, context);
    EXPECT_TRUE(torch::allclose(padded.narrow(1, padding, kTokens - padding), alone, 1e-5, 1e-5));
  }
}

}  // namespace
}  // namespace zoo
