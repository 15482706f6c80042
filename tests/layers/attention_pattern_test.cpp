// Patterns show exactly the pairs of their definitions, and attention over their bands is attention step by
// step with the corresponding mask.

#include "layers/attention/attention_pattern.h"

#include <cstdlib>
#include <functional>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/cpu_attention.h"
#include "layers/attention/banded_attention.h"
#include "layers/attention/kinds/sparse_patterns.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/attention/window_pattern.h"

namespace zoo {
namespace {

using Pattern = std::shared_ptr<const AttentionPattern>;

/// A pattern and its definition in words of the paper, without causality.
struct DefinedPattern {
  std::function<Pattern(Direction)> make;
  std::function<bool(int64_t query, int64_t key)> sees;
};

DefinedPattern window(int64_t size, int64_t dilation, int64_t n_global) {
  return {[=](Direction direction) {
            return std::make_shared<WindowPattern>(
                direction, WindowOptions().size(size).dilation(dilation).n_global(n_global));
          },
          [=](int64_t i, int64_t j) {
            const int64_t distance = std::abs(i - j);
            return i < n_global || j < n_global || (distance % dilation == 0 && distance / dilation <= size);
          }};
}

DefinedPattern strided(int64_t stride) {
  return {[=](Direction direction) { return std::make_shared<StridedPattern>(direction, stride); },
          [=](int64_t i, int64_t j) { return std::abs(i - j) < stride || std::abs(i - j) % stride == 0; }};
}

DefinedPattern fixed(int64_t stride, int64_t n_summary) {
  return {[=](Direction direction) { return std::make_shared<FixedPattern>(direction, stride, n_summary); },
          [=](int64_t i, int64_t j) { return i / stride == j / stride || j % stride >= stride - n_summary; }};
}

std::vector<DefinedPattern> defined_patterns() {
  return {window(1, 1, 0), window(3, 1, 0),  window(40, 1, 0), window(3, 2, 0),
          window(2, 5, 1), window(20, 3, 4), strided(2),       strided(7),
          strided(64),     fixed(4, 1),      fixed(7, 3),      fixed(64, 2)};
}

/// Several patterns without a short definition.
std::vector<Pattern> block_patterns(Direction direction) {
  std::vector<Pattern> patterns;
  for (const auto& options : {BlockOptions().size(4).n_random(2), BlockOptions().size(16).n_window(0),
                              BlockOptions().size(5).n_global(0).n_random(1).seed(3)})
    patterns.push_back(std::make_shared<BlocksPattern>(direction, options));
  return patterns;
}

std::vector<Pattern> all_patterns(Direction direction) {
  auto patterns = block_patterns(direction);
  for (const auto& c : defined_patterns()) patterns.push_back(c.make(direction));
  return patterns;
}

constexpr std::array kDirections{Direction::causal, Direction::bidirectional};
constexpr std::array<int64_t, 6> kLengths{1, 2, 7, 16, 33, 70};

TEST(AttentionPattern, ShowsThePairsOfItsDefinition) {
  for (const auto direction : kDirections) {
    for (const auto& c : defined_patterns()) {
      const auto pattern = c.make(direction);
      for (const int64_t n : kLengths) {
        const auto visible = visible_pairs(pattern->bands(n), n, n);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const bool expected = c.sees(i, j) && (j <= i || direction == Direction::bidirectional);
            ASSERT_EQ(visible[i][j].item<bool>(), expected)
                << pattern->description() << ", " << n << " positions: " << i << " sees " << j;
          }
        }
      }
    }
  }
}

TEST(AttentionPattern, BandsHaveNoPairInCommon) {
  for (const auto direction : kDirections) {
    for (const auto& pattern : all_patterns(direction)) {
      for (const int64_t n : kLengths) {
        const auto bands = pattern->bands(n);
        EXPECT_EQ(n_pairs(bands), visible_pairs(bands, n, n).sum().item<int64_t>())
            << pattern->description() << ", " << n << " positions";
      }
    }
  }
}

TEST(AttentionPattern, TheConditionForDecodingIsThatOfTheBands) {
  for (const auto& pattern : all_patterns(Direction::causal)) {
    const auto positions = torch::arange(70);
    EXPECT_TRUE(torch::equal(pattern->sees(positions.unsqueeze(1), positions.unsqueeze(0)),
                             visible_pairs(pattern->bands(70), 70, 70)))
        << pattern->description();
    if (const auto reach = pattern->reach()) {  // what is out of reach is never seen
      const auto distance = positions.unsqueeze(1) - positions.unsqueeze(0);
      const auto forgotten = distance.ge(reach->recent).logical_and(positions.unsqueeze(0).ge(reach->first));
      const auto seen = pattern->sees(positions.unsqueeze(1), positions.unsqueeze(0));
      const auto seen_by_local = seen.slice(0, reach->first);
      EXPECT_FALSE(seen_by_local.logical_and(forgotten.slice(0, reach->first)).any().item<bool>());
    }
  }
}

TEST(AttentionPattern, BlocksSeeNeighboursGlobalsAndSomeOthers) {
  const BlocksPattern pattern(Direction::bidirectional,
                              BlockOptions().size(4).n_window(1).n_global(1).n_random(2));
  std::set<std::vector<int64_t>> drawn;
  for (int64_t block = 2; block < 18; ++block) {
    const auto seen = pattern.blocks_of(block, 20);
    const std::set<int64_t> unique(seen.begin(), seen.end());
    for (const int64_t other : {int64_t{0}, block - 1, block, block + 1, int64_t{19}})
      EXPECT_TRUE(unique.contains(other)) << block << " " << other;
    EXPECT_EQ(unique.size(), seen.size());
    EXPECT_GE(seen.size(), 6);
    EXPECT_LE(seen.size(), 7);
    drawn.insert(seen);
  }
  EXPECT_EQ(pattern.blocks_of(0, 20).size(), 20U);  // global queries see everything
  EXPECT_EQ(pattern.blocks_of(19, 20).size(), 20U);
  EXPECT_GT(drawn.size(), 10U);  // not the same blocks for all
  const BlocksPattern other(Direction::bidirectional, BlockOptions().size(4).n_random(2).seed(1));
  EXPECT_NE(pattern.blocks_of(9, 20), other.blocks_of(9, 20));
}

TEST(AttentionPattern, ShortSequencesSeeEverythingIfAsked) {
  const auto options = BlockOptions().size(4).n_random(1).full_up_to(40);
  const BlocksPattern pattern(Direction::bidirectional, options);
  EXPECT_TRUE(visible_pairs(pattern.bands(40), 40, 40).all().item<bool>());
  const BlocksPattern usual(Direction::bidirectional, BlockOptions().size(4).n_random(1));
  EXPECT_TRUE(torch::equal(visible_pairs(pattern.bands(41), 41, 41), visible_pairs(usual.bands(41), 41, 41)));
  EXPECT_FALSE(visible_pairs(usual.bands(40), 40, 40).all().item<bool>());
  EXPECT_THROW(BlocksPattern(Direction::causal, options), c10::Error);
}

TEST(AttentionPattern, RandomBlocksOfARowDoNotDependOnPadding) {
  const BlocksPattern pattern(Direction::bidirectional, BlockOptions().size(4).n_random(2));
  const auto rows = pattern.visible({.length = 60, .lengths = torch::tensor({60, 41})});
  EXPECT_TRUE(torch::equal(visible_pairs(rows.row(1), 60, 60).narrow(0, 0, 41).narrow(1, 0, 41),
                           visible_pairs(pattern.bands(41), 41, 41)));
  EXPECT_EQ(n_pairs(rows.row(0)), n_pairs(pattern.bands(60)));
}

TEST(AttentionPattern, GlobalTokensByTheirIds) {
  const WindowPattern pattern(Direction::bidirectional,
                              WindowOptions().size(2).n_global(1).global_ids({7, 9}));
  const auto ids = torch::tensor({{1, 2, 3, 7, 7, 4, 5, 9}, {1, 2, 3, 4, 5, 6, 8, 2}});
  const auto rows = pattern.visible({.length = 8, .ids = ids});
  const std::vector<std::set<int64_t>> global{{0, 3, 4, 7}, {0}};
  for (int64_t b = 0; b < 2; ++b) {
    const auto visible = visible_pairs(rows.row(b), 8, 8);
    EXPECT_EQ(n_pairs(rows.row(b)), visible.sum().item<int64_t>());
    const auto& of_row = global[static_cast<size_t>(b)];
    for (int64_t i = 0; i < 8; ++i)
      for (int64_t j = 0; j < 8; ++j)
        EXPECT_EQ(visible[i][j].item<bool>(),
                  of_row.contains(i) || of_row.contains(j) || std::abs(i - j) <= 2);
  }
  EXPECT_THROW(pattern.visible({.length = 8}), c10::Error);
}

TEST(AttentionPattern, RefusesWhatIsNoPattern) {
  EXPECT_THROW(WindowPattern(Direction::causal, WindowOptions().size(0)), c10::Error);
  EXPECT_THROW(WindowPattern(Direction::causal, WindowOptions().dilation(0)), c10::Error);
  EXPECT_THROW(WindowPattern(Direction::causal, WindowOptions().global_ids({1})), c10::Error);
  EXPECT_THROW(StridedPattern(Direction::causal, 1), c10::Error);
  EXPECT_THROW(FixedPattern(Direction::causal, 4, 4), c10::Error);
  EXPECT_THROW(FixedPattern(Direction::causal, 4, 0), c10::Error);
  EXPECT_THROW(BlocksPattern(Direction::causal, BlockOptions().size(0)), c10::Error);
}

using Attend =
    std::function<torch::Tensor(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v)>;

/// Heads in the memory layout of a projection: (B, T, H, D).
std::vector<torch::Tensor> random_heads(int64_t n_rows, int64_t n_heads, int64_t n_kv_heads, int64_t n,
                                        int64_t width) {
  torch::manual_seed(3);
  std::vector<torch::Tensor> heads;
  for (const int64_t count : {n_heads, n_kv_heads, n_kv_heads})
    heads.push_back(torch::randn({n_rows, n, count, width}).transpose(1, 2));
  return heads;
}

/// Output and gradients.
std::vector<torch::Tensor> results(const std::vector<torch::Tensor>& heads, torch::ScalarType type,
                                   const Attend& attend) {
  std::vector<torch::Tensor> inputs;
  for (const auto& x : heads) inputs.push_back(x.to(type).detach().clone().requires_grad_());
  const auto out = attend(inputs[0], inputs[1], inputs[2]);
  torch::manual_seed(4);
  (out * torch::randn(out.sizes()).to(type)).sum().backward();
  return {out.detach(), inputs[0].grad(), inputs[1].grad(), inputs[2].grad()};
}

constexpr double kScale = 0.3;

void expect_step_by_step(const AttentionPattern& pattern, const std::vector<torch::Tensor>& heads,
                         const torch::Tensor& lengths, double tolerance) {
  const int64_t n = heads[0].size(2);
  const auto visible = pattern.visible({.length = n, .lengths = lengths});
  std::vector<torch::Tensor> masks;
  for (const auto& bands : visible.rows) masks.push_back(visible_pairs(*bands, n, n));
  const auto mask = Mask::keep(torch::stack(masks)) & Mask::lengths(lengths);
  const auto exact = results(heads, torch::kDouble, [&](const auto& q, const auto& k, const auto& v) {
    return explicit_attention(q, k, v, {.mask = mask, .scale = kScale}).output;
  });
  const auto gathered = results(heads, torch::kFloat, [&](const auto& q, const auto& k, const auto& v) {
    return gathered_attention(q, k, v, visible, kScale);
  });
  const auto banded = results(heads, torch::kFloat, [&](const auto& q, const auto& k, const auto& v) {
    return banded_attention(q, k, v, visible, kScale);
  });
  const auto doubled = results(heads, torch::kDouble, [&](const auto& q, const auto& k, const auto& v) {
    return gathered_attention(q, k, v, visible, kScale);
  });
  for (size_t i = 0; i < exact.size(); ++i) {
    const double size = exact[i].abs().max().item<double>() + 1e-3;
    const auto error = [&](const torch::Tensor& x) {
      return (x - exact[i]).abs().max().item<double>() / size;
    };
    EXPECT_LE(error(gathered[i]), tolerance) << pattern.description() << ", gathered, tensor " << i;
    EXPECT_LE(error(banded[i]), tolerance) << pattern.description() << ", kernel, tensor " << i;
    EXPECT_LE(error(doubled[i]), 1e-12) << pattern.description() << ", in double precision, tensor " << i;
  }
}

TEST(BandedAttention, IsAttentionStepByStepWithTheMaskOfThePattern) {
  for (const auto direction : kDirections) {
    for (const auto& pattern : all_patterns(direction)) {
      expect_step_by_step(*pattern, random_heads(2, 4, 2, 70, 16), {}, 2e-6);
      expect_step_by_step(*pattern, random_heads(3, 2, 2, 33, 32), torch::tensor({33, 20, 1}), 2e-6);
    }
  }
}

// Several tiles of keys.
TEST(BandedAttention, IsAttentionStepByStepInLongerSequences) {
  for (const auto direction : kDirections) {
    for (const Pattern& pattern : std::vector<Pattern>{
             std::make_shared<WindowPattern>(direction, WindowOptions().size(150)),
             std::make_shared<WindowPattern>(direction, WindowOptions().size(100).dilation(2).n_global(3)),
             std::make_shared<StridedPattern>(direction, 2),
             std::make_shared<BlocksPattern>(direction, BlockOptions().size(48))})
      expect_step_by_step(*pattern, random_heads(2, 2, 1, 700, 16), torch::tensor({700, 555}), 5e-6);
  }
}

TEST(BandedAttention, IsFullAttentionWhereThePatternCoversEverything) {
  const auto heads = random_heads(2, 4, 4, 70, 16);
  for (const auto direction : kDirections) {
    const WindowPattern pattern(direction, WindowOptions().size(69));
    const auto mask = direction == Direction::causal ? Mask::causal() : Mask();
    const auto full = results(heads, torch::kFloat, [&](const auto& q, const auto& k, const auto& v) {
      return fused_attention(q, k, v, {.mask = mask, .scale = kScale});
    });
    const auto ours = results(heads, torch::kFloat, [&](const auto& q, const auto& k, const auto& v) {
      return banded_attention(q, k, v, pattern.visible({.length = 70}), kScale);
    });
    for (size_t i = 0; i < full.size(); ++i) EXPECT_TRUE(torch::allclose(full[i], ours[i], 1e-5, 1e-5)) << i;
  }
}

// Not a bit of a query's output changes with a key that it does not see; and with all others, it changes.
TEST(BandedAttention, HiddenKeysChangeNothingAtAll) {
  constexpr int64_t n = 50, changed = 23;
  for (const auto direction : kDirections) {
    for (const auto& pattern : all_patterns(direction)) {
      const auto visible = pattern->visible({.length = n});
      const auto sees = visible_pairs(visible.row(0), n, n).select(1, changed);
      auto heads = random_heads(1, 2, 2, n, 16);
      for (const bool kernel : {true, false}) {
        const auto output = [&] {
          return kernel ? banded_attention(heads[0], heads[1], heads[2], visible, kScale)
                        : gathered_attention(heads[0], heads[1], heads[2], visible, kScale);
        };
        const auto before = output();
        heads[1].select(2, changed).mul_(-3);
        heads[2].select(2, changed).add_(100);
        const auto differs = output().ne(before).flatten(3).any(3).any(1).squeeze(0);
        EXPECT_TRUE(torch::equal(differs, sees)) << pattern->description() << (kernel ? ", kernel" : "");
      }
    }
  }
}

TEST(BandedAttention, AQueryThatSeesNothingGetsZeros) {
  const auto heads = random_heads(1, 2, 2, 20, 16);
  const VisiblePairs visible(Bands{Band::all({.first = 4, .step = 1, .count = 8}, {.count = 20})});
  for (const auto& out : {results(heads, torch::kFloat,
                                  [&](const auto& q, const auto& k, const auto& v) {
                                    return banded_attention(q, k, v, visible, kScale);
                                  }),
                          results(heads, torch::kFloat, [&](const auto& q, const auto& k, const auto& v) {
                            return gathered_attention(q, k, v, visible, kScale);
                          })}) {
    for (const auto& x : out) EXPECT_TRUE(x.isfinite().all().item<bool>());
    for (const auto& x : {out[0], out[1]}) {  // the output, and the gradient of the queries
      EXPECT_EQ(x.narrow(2, 0, 4).abs().max().item<float>(), 0);
      EXPECT_EQ(x.narrow(2, 12, 8).abs().max().item<float>(), 0);
      EXPECT_GT(x.narrow(2, 4, 8).abs().min().item<float>(), 0);
    }
  }
}

TEST(BandedAttention, DropoutKeepsTheMean) {
  const auto heads = random_heads(1, 1, 1, 64, 16);
  const WindowPattern pattern(Direction::causal, WindowOptions().size(20));
  const auto visible = pattern.visible({.length = 64});
  const auto exact = banded_attention(heads[0], heads[1], heads[2], visible, kScale);
  auto sum = torch::zeros_like(exact);
  constexpr int repeats = 600;
  for (int i = 0; i < repeats; ++i)
    sum += banded_attention(heads[0], heads[1], heads[2], visible, kScale, 0.3);
  EXPECT_LE((sum / repeats - exact).abs().mean().item<double>(), 0.03);
  EXPECT_FALSE(torch::equal(banded_attention(heads[0], heads[1], heads[2], visible, kScale, 0.3), exact));
}

}  // namespace
}  // namespace zoo
