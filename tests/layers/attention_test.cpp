#include "layers/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/kinds/shaw_attention.h"
#include "layers/attention/position_bias.h"

namespace zoo {
namespace {

constexpr int64_t kTexts = 2, kTokens = 9, kModel = 24, kHeads = 4;

AttentionOptions base() { return {kModel, kHeads}; }

// Every variant of the module.
std::vector<std::pair<std::string, std::function<Attention()>>> variants() {
  const auto plain = [](const AttentionOptions& options) { return [options] { return Attention(options); }; };
  const auto shaw = [](const AttentionOptions& options) {
    return [options] {
      return Attention(std::shared_ptr<AttentionImpl>(std::make_shared<ShawAttentionImpl>(options, 3)));
    };
  };
  return {{"separate", plain(base())},
          {"fused", plain(base().projection(Projection::fused).qkv_bias(false))},
          {"grouped", plain(base().n_kv_heads(2))},
          {"multi-query, fused", plain(base().n_kv_heads(1).projection(Projection::fused))},
          {"one head", plain(AttentionOptions(kModel, 1))},
          {"head_dim", plain(base().head_dim(10).scale(1.0))},
          {"qk_norm", plain(base().qk_norm(NormOptions(6).kind(NormKind::rms_norm)))},
          {"shaw", shaw(base())},
          {"shaw, grouped", shaw(base().n_kv_heads(2))}};
}

// The context that a stack passes to its layers for one kind of positions.
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

// Runs a block of tokens at `range`.
torch::Tensor run(Attention& attention, const torch::Tensor& x, const PositionKind& kind,
                  const PositionRange& range, LayerState* state = nullptr,
                  std::vector<torch::Tensor>* maps = nullptr) {
  const auto table = kind.rotary ? kind.rotary(range) : RotaryTable{};
  AttentionContext context{.mask = range.differs_by_row() ? Mask::causal(range.offsets()) : Mask::causal()};
  context.state = state;
  context.range = &range;
  context.maps = maps;
  if (kind.rotary) context.rotary = &table;
  if (kind.bias) context.bias = kind.bias(range);
  return attention(x, context);
}

// Runs whole sequences.
torch::Tensor run(Attention& attention, const torch::Tensor& x, const PositionKind& kind,
                  std::vector<torch::Tensor>* maps = nullptr) {
  return run(attention, x, kind, PositionRange(0, x.size(1)), nullptr, maps);
}

// Calls `check` with every variant and every kind of positions that fits it.
void for_each_attention(const std::function<void(Attention&, const PositionKind&)>& check) {
  for (const auto& [name, make] : variants()) {
    for (const auto& kind : position_kinds()) {
      Attention attention = make();
      if (kind.rotary && attention->head_dim() != 6) continue;
      if (kind.bias && attention->options.n_heads() != kHeads) continue;
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
    const auto fused = run(attention, x, kind), stepwise = run(attention, x, kind, &maps);
    EXPECT_TRUE(torch::allclose(fused, stepwise, 1e-5, 1e-6));
    ASSERT_EQ(maps.size(), 1U);
    EXPECT_EQ(maps[0].sizes(), (torch::IntArrayRef{kTexts, attention->options.n_heads(), kTokens, kTokens}));
    EXPECT_TRUE(torch::allclose(maps[0].sum(-1), torch::ones({kTexts, attention->options.n_heads(), kTokens}),
                                0, 1e-5));
  });
}

// Token by token, in uneven blocks, and all at once: the results are the same.
TEST(Attention, CachedEqualsUncachedForEveryPositionKind) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  const std::vector<std::vector<int64_t>> splits{{1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 1, 3, 1}};
  for_each_attention([&](Attention& attention, const PositionKind& kind) {
    const auto x = torch::randn({kTexts, kTokens, kModel});
    const auto whole = run(attention, x, kind);
    for (const auto& blocks : splits) {
      const auto state = attention->new_state(kTexts);
      std::vector<torch::Tensor> pieces;
      int64_t first = 0;
      for (const int64_t n : blocks) {
        pieces.push_back(run(attention, x.narrow(1, first, n), kind, PositionRange(first, n), state.get()));
        first += n;
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
    const auto a = run(attention, x, kind), b = run(attention, changed, kind);
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
    const auto part = [&](const Linear& linear) {
      return torch::linear(x, linear->matrix().parameter().narrow(0, h * width, width),
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
    auto from = separate->named_parameters(), to = fused->named_parameters();
    for (const std::string name : {"weight", "bias"}) {
      to["qkv." + name].copy_(torch::cat({from["q." + name], from["k." + name], from["v." + name]}));
      to["out." + name].copy_(from["out." + name]);
    }
  }
  const auto x = torch::randn({kTexts, kTokens, kModel});
  const AttentionContext cross{.memory = torch::randn({kTexts, 5, kModel})};
  EXPECT_TRUE(torch::allclose(separate(x), fused(x), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(separate(x, cross), fused(x, cross), 1e-5, 1e-6));
}

TEST(Attention, CrossAttentionReadsTheMemoryOnce) {
  torch::manual_seed(6);
  for (const auto projection : {Projection::separate, Projection::fused}) {
    Attention attention(base().projection(projection));
    const auto x = torch::randn({kTexts, 3, kModel});
    AttentionContext context;
    context.memory = torch::randn({kTexts, 5, kModel});
    const auto expected = attention(x, context);
    const auto remembered = attention->remember(context.memory);
    EXPECT_EQ(remembered->n_memories(), kTexts);
    EXPECT_EQ(remembered->n_columns(), 5);
    context.remembered = remembered.get();
    EXPECT_TRUE(torch::allclose(attention(x, context), expected, 1e-5, 1e-6));
    // Neither the memory nor what it was made of is read again.
    context.memory.fill_(std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(torch::allclose(attention(x, context), expected, 1e-5, 1e-6));
    context.memory.reset();
    EXPECT_TRUE(torch::allclose(attention(x, context), expected, 1e-5, 1e-6));
    EXPECT_EQ(remembered->n_columns(), 5);
  }
}

// The beams of a text share one memory, which is not copied.
TEST(Attention, OneMemoryServesSeveralRows) {
  torch::manual_seed(10);
  constexpr int64_t kBeams = 3;
  for (const auto& [name, make] : variants()) {
    SCOPED_TRACE(name);
    Attention attention = make();
    const auto memory = torch::randn({kTexts, 5, kModel}), lengths = torch::tensor({5, 2});
    const auto remembered = attention->remember(memory);
    for (const int64_t n_tokens : {1, 4}) {
      const auto x = torch::randn({kTexts * kBeams, n_tokens, kModel});
      for (const bool padded : {false, true}) {
        AttentionContext shared, each;
        shared.remembered = remembered.get();
        each.memory = memory.repeat_interleave(kBeams, 0);
        if (padded) {
          shared.mask = Mask::lengths(lengths);
          each.mask = Mask::lengths(lengths.repeat_interleave(kBeams, 0));
        }
        EXPECT_TRUE(torch::allclose(attention(x, shared), attention(x, each), 1e-5, 1e-6));
      }
    }
  }
  Attention attention(base());
  const auto remembered = attention->remember(torch::randn({kTexts, 5, kModel}));
  AttentionContext context;
  context.remembered = remembered.get();
  EXPECT_THROW(attention(torch::randn({kTexts * kBeams - 1, 1, kModel}), context), c10::Error);
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

// Rows of unequal length continue together, each from its own position. Each gives the same result as alone.
TEST(Attention, RowsThatBeginAtDifferentPositionsEqualTheRowsAlone) {
  torch::manual_seed(9);
  const torch::NoGradGuard no_grad;
  const std::vector<std::vector<int64_t>> calls{{5, 2}, {1, 4}, {1, 1}, {0, 1}, {2, 1}};
  for_each_attention([&](Attention& attention, const PositionKind& kind) {
    const auto x = torch::randn({kTexts, kTokens, kModel});
    const auto alone = run(attention, x, kind);
    const auto state = attention->new_state(kTexts);
    std::vector<int64_t> before(kTexts, 0);
    for (const auto& counts : calls) {
      const int64_t count = std::ranges::max(counts);
      const auto tokens = torch::randn({kTexts, count, kModel}) * 100;  // the rest of it is padding
      for (int64_t b = 0; b < kTexts; ++b) {
        const auto row = static_cast<size_t>(b);
        tokens[b].narrow(0, 0, counts[row]).copy_(x[b].narrow(0, before[row], counts[row]));
      }
      const PositionRange range(before, counts, count, torch::kCPU);
      const auto y = run(attention, tokens, kind, range, state.get());
      for (int64_t b = 0; b < kTexts; ++b) {
        const auto row = static_cast<size_t>(b);
        EXPECT_TRUE(torch::allclose(y[b].narrow(0, 0, counts[row]),
                                    alone[b].narrow(0, before[row], counts[row]), 1e-5, 1e-5))
            << "row " << b << " from " << before[row];
        before[row] += counts[row];
      }
    }
    EXPECT_EQ(before, (std::vector<int64_t>{kTokens, kTokens}));
  });
}

TEST(Attention, AStateNeedsPositions) {
  Attention attention(base());
  const auto state = attention->new_state(kTexts);
  AttentionContext context;
  context.state = state.get();
  EXPECT_THROW(attention(torch::randn({kTexts, 3, kModel}), context), c10::Error);
}

// DETR adds positions to queries and keys in every layer, not to values.
TEST(Attention, PositionsOfALayerAreAddedToQueriesAndKeysAlone) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const auto x = torch::randn({2, 5, 12}), memory = torch::randn({2, 7, 12});
  const auto positions = torch::randn({1, 5, 12}), memory_positions = torch::randn({1, 7, 12});
  for (const auto projection : {Projection::separate, Projection::fused}) {
    Attention attention(AttentionOptions(12, 3).n_kv_heads(1).projection(projection));
    attention->eval();
    // The three maps one by one, from what each is to see.
    const auto part = [&](size_t index, const torch::Tensor& input) {
      if (projection == Projection::fused) return attention->qkv->forward_some(input, {index, 1});
      return (index == 0 ? attention->q : index == 1 ? attention->k : attention->v)->forward(input);
    };
    const auto expected = [&](const torch::Tensor& queries, const torch::Tensor& keys,
                              const torch::Tensor& values) {
      const auto heads = [](const torch::Tensor& y, int64_t n) {
        return y.view({y.size(0), y.size(1), n, 4}).transpose(1, 2);
      };
      const auto scores =
          torch::matmul(heads(part(0, queries), 3), heads(part(1, keys), 1).transpose(-2, -1)) / 2;
      const auto mixed = torch::matmul(scores.softmax(-1), heads(part(2, values), 1));
      return attention->out->forward(mixed.transpose(1, 2).reshape({2, 5, 12}));
    };
    EXPECT_TRUE(torch::allclose(attention(x, {.query_positions = positions}),
                                expected(x + positions, x + positions, x), 1e-5, 1e-6));
    const auto cross = expected(x + positions, memory + memory_positions, memory);
    EXPECT_TRUE(torch::allclose(
        attention(x, {.memory = memory, .query_positions = positions, .memory_positions = memory_positions}),
        cross, 1e-5, 1e-6));
    const auto remembered = attention->remember(memory, memory_positions);
    EXPECT_TRUE(torch::allclose(attention(x, {.remembered = remembered.get(), .query_positions = positions}),
                                cross, 1e-5, 1e-6));
  }
}

}  // namespace
}  // namespace zoo
