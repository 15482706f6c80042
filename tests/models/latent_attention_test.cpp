#include "models/mixers/latent_attention.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/rotary.h"
#include "layers/weights/weights.h"

namespace zoo {
namespace {

constexpr int64_t kLatentModel = 20, kLatentHeads = 3, kLatentHead = 10, kLatentTurned = 4, kLatentValue = 5,
                  kLatentRank = 7;

LatentAttentionOptions some_options() {
  return LatentAttentionOptions(kLatentModel, kLatentHeads, kLatentHead)
      .rotary_width(kLatentTurned)
      .value_dim(kLatentValue)
      .kv_rank(kLatentRank)
      .norm(NormOptions(1).kind(NormKind::rms_norm).eps(1e-6));
}

LatentAttention random_attention(const LatentAttentionOptions& options) {
  torch::manual_seed(3);
  LatentAttention attention(options);
  for (auto& parameter : attention->parameters()) parameter.detach().normal_(0, 0.4);
  attention->eval();
  return attention;
}

std::vector<LatentAttentionOptions> kinds_of_latent() {
  return {some_options(), some_options().q_rank(6).bias(true).out_bias(true), some_options().scale(0.7)};
}

/// Angles for positions 0 … n-1.
RotaryTable angles(const PositionRange& range) {
  Rotary rotary(RotaryOptions(kLatentTurned).theta(50).layout(RotaryLayout::interleaved));
  return rotary(range, torch::kCPU);
}

/// x (R) at position t, turned pair by pair.
torch::Tensor turned(const torch::Tensor& x, int64_t t) {
  auto y = x.clone();
  for (int64_t i = 0; i < kLatentTurned / 2; ++i) {
    const double angle =
        static_cast<double>(t) * std::pow(50.0, -2.0 * static_cast<double>(i) / kLatentTurned);
    y[2 * i] = x[2 * i] * std::cos(angle) - x[2 * i + 1] * std::sin(angle);
    y[2 * i + 1] = x[2 * i] * std::sin(angle) + x[2 * i + 1] * std::cos(angle);
  }
  return y;
}

/// The equations of the paper (section 2.1), token by token. x: (T, D).
torch::Tensor written_out(LatentAttention attention, const torch::Tensor& x) {
  const auto& options = attention->options;
  const int64_t T = x.size(0), plain = kLatentHead - kLatentTurned;
  std::vector<torch::Tensor> keys, values, rows;
  for (int64_t t = 0; t < T; ++t) {
    const auto both = attention->kv_down(x[t]);
    const auto c = attention->kv_norm(both.narrow(0, 0, kLatentRank));
    const auto k_rotary = turned(both.narrow(0, kLatentRank, kLatentTurned), t);
    const auto up = attention->kv_up(c).view({kLatentHeads, plain + kLatentValue});
    std::vector<torch::Tensor> of_heads;
    for (int64_t h = 0; h < kLatentHeads; ++h)
      of_heads.push_back(torch::cat({up[h].narrow(0, 0, plain), k_rotary}));
    keys.push_back(torch::stack(of_heads));               // (H, Dh)
    values.push_back(up.narrow(1, plain, kLatentValue));  // (H, Dv)
    const auto flat =
        attention->q ? attention->q(x[t]) : attention->q_up(attention->q_norm(attention->q_down(x[t])));
    const auto q = flat.view({kLatentHeads, kLatentHead});
    std::vector<torch::Tensor> heads;
    for (int64_t h = 0; h < kLatentHeads; ++h) {
      const auto query =
          torch::cat({q[h].narrow(0, 0, plain), turned(q[h].narrow(0, plain, kLatentTurned), t)});
      auto scores = torch::zeros({t + 1});
      for (int64_t s = 0; s <= t; ++s)
        scores[s] =
            query.dot(keys[static_cast<size_t>(s)][h]) * options.scale().value_or(1 / std::sqrt(kLatentHead));
      const auto weights = scores.softmax(0);
      auto mixed = torch::zeros({kLatentValue});
      for (int64_t s = 0; s <= t; ++s) mixed = mixed + weights[s] * values[static_cast<size_t>(s)][h];
      heads.push_back(mixed);
    }
    rows.push_back(attention->out(torch::cat(heads)));
  }
  return torch::stack(rows);
}

TEST(LatentAttention, IsThatOfThePaper) {
  const torch::NoGradGuard no_grad;
  for (const auto& options : kinds_of_latent()) {
    auto attention = random_attention(options);
    const auto x = torch::randn({2, 6, kLatentModel});
    const auto table = angles(PositionRange(0, 6));
    const auto found = attention(x, {.mask = Mask::causal(), .rotary = &table});
    for (int64_t b = 0; b < 2; ++b) {
      const auto expected = written_out(attention, x[b]);
      EXPECT_TRUE(torch::allclose(found[b], expected, 1e-4, 1e-5)) << (found[b] - expected).abs().max();
    }
  }
}

// In decoding W_up and W_value are absorbed; weights in fewer bits are used as they are.
TEST(LatentAttention, TokenByTokenIsAsTheWhole) {
  const torch::NoGradGuard no_grad;
  for (const auto format : {WeightFormat::fp32, WeightFormat::bf16}) {
    for (const auto& options : kinds_of_latent()) {
      auto attention = random_attention(options);
      store_weights(*attention, format);
      const auto x = torch::randn({2, 9, kLatentModel});
      const auto table = angles(PositionRange(0, 9));
      const auto whole = attention(x, {.mask = Mask::causal(), .rotary = &table});
      const auto state = attention->new_state(2);
      int64_t first = 0;
      for (const int64_t n : {3, 1, 2, 1, 1, 1}) {
        const PositionRange range(first, n);
        const auto now = angles(range);
        const auto part =
            attention(x.narrow(1, first, n),
                      {.mask = Mask::causal(), .state = state.get(), .range = &range, .rotary = &now});
        EXPECT_TRUE(torch::allclose(part, whole.narrow(1, first, n), 1e-4, 1e-4))
            << first << ": " << (part - whole.narrow(1, first, n)).abs().max();
        first += n;
      }
    }
  }
}

// r + R numbers for each token (DeepSeek V2, table 1).
TEST(LatentAttention, KeepsOneShortVectorOfEachToken) {
  const torch::NoGradGuard no_grad;
  auto attention = random_attention(some_options());
  const auto bytes_after = [&](int64_t n) {
    const auto state = attention->new_state(1);
    const PositionRange range(0, n);
    const auto table = angles(range);
    attention(torch::randn({1, n, kLatentModel}),
              {.mask = Mask::causal(), .state = state.get(), .range = &range, .rotary = &table});
    return state->bytes();
  };
  // Storage grows in blocks; what a block of tokens takes is seen between two lengths.
  const int64_t many = 1024;
  EXPECT_NEAR(static_cast<double>(bytes_after(2 * many) - bytes_after(many)) / many,
              4.0 * (kLatentRank + kLatentTurned), 1.0);
  CostAccount account(CostAccount::Detail::layers);
  count_latent_attention(account, "mixer", some_options(), 1, 1, 1);
  EXPECT_EQ(account.entries().front().state_bytes_per_token, 4 * (kLatentRank + kLatentTurned));
}

TEST(LatentAttention, HasMapsAndCanBeCopied) {
  const torch::NoGradGuard no_grad;
  auto attention = random_attention(some_options());
  const auto x = torch::randn({2, 6, kLatentModel});
  const auto table = angles(PositionRange(0, 6));
  std::vector<torch::Tensor> maps;
  const auto fused = attention(x, {.mask = Mask::causal(), .rotary = &table});
  const auto shown = attention(x, {.mask = Mask::causal(), .rotary = &table, .maps = &maps});
  EXPECT_TRUE(torch::allclose(fused, shown, 1e-4, 1e-5));
  ASSERT_EQ(maps.size(), 1U);
  EXPECT_TRUE(torch::allclose(maps[0].sum(-1), torch::ones({2, kLatentHeads, 6})));
  LatentAttention other(copy_of(attention.ptr()));
  EXPECT_TRUE(torch::equal(other(x, {.mask = Mask::causal(), .rotary = &table}), fused));
}

}  // namespace
}  // namespace zoo
