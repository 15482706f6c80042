// The texts of the kernels for decoding on a GPU, compiled for the processor (tests/support/texts_here.h).

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "kernels/gpu_decoding_attention.h"
#include "kernels/gpu_product.h"
#include "tests/support/texts_here.h"

namespace zoo::testing {
namespace {

double rounding_in(torch::ScalarType type) { return type == torch::kFloat ? 1e-5 : 8e-3; }

void expect_close(const torch::Tensor& found, const torch::Tensor& wanted, double tolerance) {
  ASSERT_EQ(found.sizes(), wanted.sizes());
  EXPECT_LE((found.to(torch::kDouble) - wanted).norm().item<double>(),
            tolerance * wanted.norm().item<double>());
}

torch::Tensor exact(const torch::Tensor& x) { return x.to(torch::kDouble); }

// Rows of one block and of several, widths below and above what a block keeps at once, outputs that fill no
// block.
TEST(DecodingTexts, ProductsAreThoseOfTorch) {
  const TextsHere texts;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const int64_t n_rows : {1, 2, 4, 5, 8}) {
      for (const int64_t width : {8, 40, 1032, 8200}) {
        SCOPED_TRACE(fmt::format("{}, {} rows of {}", torch::toString(type), n_rows, width));
        torch::manual_seed(1);
        const auto x = torch::randn({n_rows, 1, width}).to(type);
        const auto first = torch::randn({3, width}).to(type), second = torch::randn({2, width}).to(type);
        const auto bias = torch::randn({3}).to(type);
        const auto wanted = torch::cat(
            {exact(x).matmul(exact(first).t()) + exact(bias), exact(x).matmul(exact(second).t())}, -1);
        const auto found =
            product_by(texts, x, {.matrices = {{first, {}, bias}, {second, {}, {}}}, .type = type});
        EXPECT_EQ(found.scalar_type(), type);
        expect_close(found, wanted, rounding_in(type));
      }
    }
  }
}

// A row's bits do not depend on how many rows are beside it.
TEST(DecodingTexts, ProductsOfOtherRowsChangeNoBit) {
  const TextsHere texts;
  torch::manual_seed(2);
  for (const bool whole : {false, true}) {
    const auto x = torch::randn({8, 4128}).to(torch::kBFloat16);
    const StoredMatrix matrix =
        whole ? StoredMatrix{torch::randint(-127, 128, {3, 4128}, torch::kInt8), torch::rand({3, 1}), {}}
              : StoredMatrix{torch::randn({3, 4128}).to(torch::kBFloat16), {}, {}};
    const ProductPlan plan{.matrices = {matrix}, .type = torch::kBFloat16, .residual = torch::zeros({8, 3})};
    const auto all = product_by(texts, x, plan);
    for (const int64_t n : {1, 3, 4, 7}) {
      auto fewer = plan;
      fewer.residual = torch::zeros({n, 3});
      EXPECT_TRUE(torch::equal(product_by(texts, x.narrow(0, 0, n), fewer), all.narrow(0, 0, n))) << n;
    }
  }
}

// The inputs are normalised in float and rounded once; the sum with the residual stream is not rounded.
TEST(DecodingTexts, ProductsHaveNormsActivationsAndResiduals) {
  const TextsHere texts;
  constexpr int64_t width = 64, f = 6;
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const auto norm : {ProductNorm::mean, ProductNorm::zero}) {
      for (const auto act : {ProductAct::none, ProductAct::relu, ProductAct::gelu_exact,
                             ProductAct::gelu_by_tanh, ProductAct::silu, ProductAct::quick_gelu}) {
        for (const auto gate : {ProductGate::none, ProductGate::first_is_gate}) {
          SCOPED_TRACE(fmt::format("{}, norm {}, act {}, gate {}", torch::toString(type),
                                   static_cast<int>(norm), static_cast<int>(act), static_cast<int>(gate)));
          torch::manual_seed(3);
          const auto x = torch::randn({3, width}) * 2 + 1, gain = torch::randn({width}),
                     shift = torch::randn({width});
          const auto weights = (torch::randn({2 * f, width}) / 8).to(type);
          const int64_t n_outputs = gate == ProductGate::none ? 2 * f : f;
          const auto residual = torch::randn({3, n_outputs});
          const auto found = product_by(texts, x,
                                        {.matrices = {{weights, {}, {}}},
                                         .type = type,
                                         .norm = norm,
                                         .gain = gain,
                                         .norm_bias = norm == ProductNorm::mean ? shift : torch::Tensor(),
                                         .gain_offset = 1,
                                         .eps = 1e-3,
                                         .act = act,
                                         .gate = gate,
                                         .residual = residual});
          const auto normal = norm == ProductNorm::mean
                                  ? torch::layer_norm(exact(x), {width}, exact(gain) + 1, exact(shift), 1e-3)
                                  : torch::rms_norm(exact(x), {width}, exact(gain) + 1, 1e-3);
          const auto y = normal.matmul(exact(weights).t());
          const auto inner = gate == ProductGate::none ? y : y.narrow(1, 0, f);
          const auto active = act == ProductAct::none           ? inner
                              : act == ProductAct::relu         ? torch::relu(inner)
                              : act == ProductAct::gelu_exact   ? torch::gelu(inner)
                              : act == ProductAct::gelu_by_tanh ? torch::gelu(inner, "tanh")
                              : act == ProductAct::silu         ? torch::silu(inner)
                                                                : inner * torch::sigmoid(1.702 * inner);
          EXPECT_EQ(found.scalar_type(), torch::kFloat);
          expect_close(found,
                       (gate == ProductGate::none ? active : active * y.narrow(1, f, f)) + exact(residual),
                       2 * rounding_in(type));
        }
      }
    }
  }
}

// Products of whole numbers are exact. Only the scales round.
TEST(DecodingTexts, ProductsOfWholeNumbersRoundTheirInputsByGroups) {
  const TextsHere texts;
  constexpr int64_t width = 1120, group = 32;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const int64_t n_scales : {int64_t{1}, width / group}) {
      SCOPED_TRACE(fmt::format("{}, {} scales", torch::toString(type), n_scales));
      torch::manual_seed(4);
      auto x = torch::randn({5, width}).to(type);
      x[1].narrow(0, 32, 32).zero_();
      const auto numbers = torch::randint(-127, 128, {7, width}, torch::kInt8);
      const auto scales = torch::rand({7, n_scales}) / 100, bias = torch::randn({7});
      const auto groups = x.to(torch::kFloat).unflatten(1, {-1, group});
      const auto range = groups.abs().amax(-1, true);
      const auto rounded =
          torch::where(range > 0, (groups * (127 / range)).round() * (range / 127), torch::zeros({}))
              .flatten(1);
      const auto wanted =
          exact(rounded).matmul((exact(numbers) * exact(scales).repeat_interleave(width / n_scales, 1)).t()) +
          exact(bias);
      const auto found = product_by(texts, x, {.matrices = {{numbers, scales, bias}}, .type = type});
      expect_close(found, wanted, type == torch::kFloat ? 1e-5 : 4e-3);
    }
  }
}

/// Queries, keys and values, normalised and turned, of one row in double.
struct Row {
  torch::Tensor q, k, v;  // (H, Dh), (K, Dh), (K, Dh)
};

torch::Tensor turned(const torch::Tensor& x, const torch::Tensor& angle, RotaryLayout layout) {
  auto y = x.clone();
  const int64_t pairs = angle.size(0);
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t a = layout == RotaryLayout::half ? i : 2 * i,
                  b = layout == RotaryLayout::half ? i + pairs : 2 * i + 1;
    const auto c = exact(angle[i]).cos(), s = exact(angle[i]).sin();
    y.select(1, a).copy_(x.select(1, a) * c - x.select(1, b) * s);
    y.select(1, b).copy_(x.select(1, b) * c + x.select(1, a) * s);
  }
  return y;
}

struct AttentionCase {
  int64_t n_heads, n_kv_heads, head_dim;
  std::vector<int64_t> columns;  // of the new tokens
  bool norms, rotates;
  RotaryLayout layout = RotaryLayout::half;
  std::optional<double> softcap = {};
  bool sinks = false;
};

void expect_attention(const AttentionCase& one, torch::ScalarType type) {
  const TextsHere texts;
  torch::manual_seed(5);
  const auto [h, k, width] = std::tuple(one.n_heads, one.n_kv_heads, one.head_dim);
  const int64_t n_rows = std::ssize(one.columns), capacity = std::ranges::max(one.columns) + 3,
                pairs = width / 4;
  auto cache = torch::randn({2, n_rows + 1, k, capacity, width}).to(type);
  const auto before = cache.clone();
  const auto heads = torch::randn({n_rows, 1, (h + 2 * k) * width}).to(type);
  const auto angle = torch::randn({n_rows, 1, 1, pairs});
  const auto gains = torch::randn({2, width}), sinks = torch::randn({h});
  DecodingAttentionPlan plan{.n_heads = h,
                             .n_kv_heads = k,
                             .keys = cache[0].narrow(0, 0, n_rows),
                             .values = cache[1].narrow(0, 0, n_rows),
                             .positions = torch::tensor(one.columns, torch::kInt64),
                             .scale = 0.4,
                             .softcap = one.softcap};
  if (one.rotates) plan.angles = {angle.cos(), angle.sin(), one.layout};
  if (one.norms) plan.query_gain = gains[0], plan.key_gain = gains[1], plan.norm_eps = 1e-4;
  if (one.sinks) plan.sinks = sinks;
  const auto found = decoding_attention_by(texts, heads, plan);
  EXPECT_EQ(found.scalar_type(), type);
  for (int64_t b = 0; b < n_rows; ++b) {
    SCOPED_TRACE(b);
    const auto parts = exact(heads[b]).view({h + 2 * k, width}).split_with_sizes({h, k, k});
    const auto placed = [&](const torch::Tensor& x, int64_t which) {
      const auto normal = one.norms ? torch::rms_norm(x, {width}, exact(gains[which]), 1e-4) : x;
      return one.rotates ? turned(normal, angle[b].view({pairs}), one.layout) : normal;
    };
    const int64_t column = one.columns[static_cast<size_t>(b)];
    auto keys = exact(before[0][b].narrow(1, 0, column + 1)),
         values = exact(before[1][b].narrow(1, 0, column + 1));
    keys.select(1, column).copy_(placed(parts[1], 1));
    values.select(1, column).copy_(parts[2]);
    expect_close(cache[0][b].narrow(1, 0, column + 1), keys, rounding_in(type));
    EXPECT_TRUE(torch::equal(cache[1][b].select(1, column), parts[2].to(type)));
    EXPECT_TRUE(torch::equal(cache[0][b].narrow(1, column + 1, 2), before[0][b].narrow(1, column + 1, 2)));
    const auto q = placed(parts[0], 0).view({k, h / k, width});
    auto scores = q.matmul(keys.transpose(1, 2)) * 0.4;  // (K, H/K, S)
    if (one.softcap) scores = (scores / *one.softcap).tanh() * *one.softcap;
    if (one.sinks) scores = torch::cat({scores, exact(sinks).view({k, h / k, 1})}, -1);
    const auto wanted = scores.softmax(-1).narrow(-1, 0, column + 1).matmul(values).reshape({1, h * width});
    expect_close(found[b], wanted, 2 * rounding_in(type));
  }
  EXPECT_TRUE(torch::equal(cache.select(1, n_rows), before.select(1, n_rows))) << "a row that takes no part";
}

// Rows of unequal lengths, of one column and of several blocks; heads that share keys, more than a block
// serves, too.
TEST(DecodingTexts, AttentionIsThatOfTorch) {
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    SCOPED_TRACE(torch::toString(type));
    expect_attention({.n_heads = 2,
                      .n_kv_heads = 2,
                      .head_dim = 16,
                      .columns = {0, 5, 2},
                      .norms = false,
                      .rotates = false},
                     type);
    expect_attention({.n_heads = 6,
                      .n_kv_heads = 2,
                      .head_dim = 8,
                      .columns = {255, 256, 600},
                      .norms = false,
                      .rotates = true},
                     type);
    expect_attention({.n_heads = 11,
                      .n_kv_heads = 1,
                      .head_dim = 16,
                      .columns = {270, 1},
                      .norms = true,
                      .rotates = true,
                      .layout = RotaryLayout::interleaved},
                     type);
    expect_attention({.n_heads = 4,
                      .n_kv_heads = 1,
                      .head_dim = 16,
                      .columns = {30, 300},
                      .norms = true,
                      .rotates = false,
                      .softcap = 2.0,
                      .sinks = true},
                     type);
  }
  // A head whose numbers do not fill the lanes of a column.
  expect_attention(
      {.n_heads = 2, .n_kv_heads = 1, .head_dim = 24, .columns = {9, 40}, .norms = true, .rotates = true},
      torch::kBFloat16);
}

TEST(DecodingTexts, OtherRowsChangeNoBitOfAttention) {
  const TextsHere texts;
  torch::manual_seed(6);
  const auto cache = torch::randn({2, 3, 2, 700, 8});
  const auto heads = torch::randn({3, 1, 8 * 8});
  const auto run = [&](int64_t n, const std::vector<int64_t>& columns, int64_t n_columns) {
    const auto own = cache.clone().narrow(1, 0, n).narrow(3, 0, n_columns);
    return decoding_attention_by(texts, heads.narrow(0, 0, n),
                                 {.n_heads = 4,
                                  .n_kv_heads = 2,
                                  .keys = own[0],
                                  .values = own[1],
                                  .positions = torch::tensor(columns, torch::kInt64)})[0];
  };
  const auto alone = run(1, {20}, 32);
  EXPECT_TRUE(torch::equal(run(3, {20, 699, 300}, 700), alone));
  EXPECT_TRUE(torch::equal(run(2, {20, 4}, 600), alone));
}

}  // namespace
}  // namespace zoo::testing
