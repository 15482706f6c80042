// Mixers that remember sums of the past: causality, padding, and states.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/attention.h"
#include "layers/running_state.h"
#include "models/mixers/delta_net.h"
#include "models/mixers/gated_convolution.h"
#include "models/mixers/linear_attention.h"
#include "models/mixers/performer.h"

namespace zoo {
namespace {

constexpr int64_t kMixerWidth = 24, kMixerHeads = 4;

struct MixerVariant {
  std::string name;
  std::shared_ptr<MixerImpl> mixer;
  bool has_weights = true;  // of tokens
  bool can_see_all = true;  // not only the past
  std::optional<Rotary> rotary = std::nullopt;
};

AttentionOptions mixer_heads() { return {kMixerWidth, kMixerHeads}; }

std::vector<MixerVariant> mixer_variants() {
  const auto delta = DeltaNetOptions(kMixerWidth, kMixerHeads);
  const Rotary rotary(RotaryOptions(6));
  std::vector<MixerVariant> list{
      {"linear", LinearAttention(mixer_heads()).ptr()},
      {"linear, grouped and fused",
       LinearAttention(mixer_heads().n_kv_heads(2).projection(Projection::fused)).ptr()},
      {"linear, rotary", LinearAttention(mixer_heads().n_kv_heads(2)).ptr(), true, true, rotary},
      {"performer", Performer(PerformerOptions(mixer_heads())).ptr()},
      {"performer, grouped, rotary, normalised",
       Performer(PerformerOptions(mixer_heads().n_kv_heads(1).qk_norm(NormOptions(6))).n_features(7)).ptr(),
       true, true, rotary},
      {"convolution", GatedConvolution(GatedConvolutionOptions(kMixerWidth)).ptr(), false, false},
      {"delta", DeltaNet(delta).ptr(), false, false},
      {"delta, fused, fewer key heads",
       DeltaNet(
           DeltaNetOptions(delta).projection(Projection::fused).n_key_heads(2).head_dim(10).qkv_bias(true))
           .ptr(),
       false, false},
      {"delta without convolution and gates",
       DeltaNet(DeltaNetOptions(delta).n_taps(0).gated(false).output_gate(false)).ptr(), false, false}};
  const torch::NoGradGuard no_grad;
  for (auto& variant : list)
    for (auto& parameter : variant.mixer->parameters()) parameter.normal_(0, 0.4);
  return list;
}

void for_each_mixer(const std::function<void(MixerVariant& variant)>& check) {
  for (auto& variant : mixer_variants()) {
    SCOPED_TRACE(variant.name);
    check(variant);
  }
}

/// Calls a variant as a stack would.
torch::Tensor call_mixer(MixerVariant& variant, const torch::Tensor& x, const PositionRange& range, Mask mask,
                         LayerState* state = nullptr, std::vector<torch::Tensor>* maps = nullptr) {
  RotaryTable table;
  if (variant.rotary) table = (*variant.rotary)(range, x.device());
  if (range.differs_by_row()) mask = mask.from(range.offsets());
  return variant.mixer->forward(
      x, {.mask = mask, .state = state, .range = &range, .rotary = &table, .maps = maps});
}

torch::Tensor whole_pass(MixerVariant& variant, const torch::Tensor& x, const Mask& mask = Mask::causal()) {
  return call_mixer(variant, x, PositionRange(0, x.size(1)), mask);
}

bool nearly_equal(const torch::Tensor& a, const torch::Tensor& b, double tolerance = 1e-4) {
  return a.sizes() == b.sizes() && torch::allclose(a, b, tolerance, tolerance);
}

TEST(RunningMixers, LaterTokensChangeNoBitOfAnEarlierOutput) {
  const torch::NoGradGuard no_grad;
  for_each_mixer([](MixerVariant& variant) {
    const auto x = torch::randn({2, 130, kMixerWidth});
    const auto before = whole_pass(variant, x);
    for (const int64_t changed : {1, 40, 64, 100, 129}) {
      auto other = x.clone();
      other.narrow(1, changed, 130 - changed).normal_(0, 20);
      const auto after = whole_pass(variant, other);
      EXPECT_TRUE(torch::equal(after.narrow(1, 0, changed), before.narrow(1, 0, changed))) << changed;
      EXPECT_FALSE(nearly_equal(after.narrow(1, changed, 1), before.narrow(1, changed, 1))) << changed;
    }
  });
}

// What follows a shorter sequence in its row changes neither its outputs nor its gradients.
TEST(RunningMixers, PaddedRowsEqualShorterRows) {
  for_each_mixer([](MixerVariant& variant) {
    for (const bool causal : {true, false}) {
      if (!causal && !variant.can_see_all) continue;
      SCOPED_TRACE(causal ? "causal" : "not causal");
      const auto x = torch::randn({2, 70, kMixerWidth});
      const auto lengths = torch::tensor({70, 33}, torch::kInt64);
      const auto mask = causal ? Mask::causal() : Mask();
      const auto parameters = variant.mixer->parameters();
      const auto gradients_of = [&](const torch::Tensor& y) {
        return torch::autograd::grad({y}, parameters, {torch::ones_like(y).cumsum(1)}, false, false, true);
      };
      const auto padded = whole_pass(variant, x, mask & Mask::lengths(lengths))[1].narrow(0, 0, 33);
      const auto alone = whole_pass(variant, x.narrow(0, 1, 1).narrow(1, 0, 33), mask)[0];
      EXPECT_TRUE(nearly_equal(padded, alone));
      const auto ours = gradients_of(padded.unsqueeze(0)), theirs = gradients_of(alone.unsqueeze(0));
      for (size_t i = 0; i < ours.size(); ++i) {
        ASSERT_TRUE(ours[i].defined());
        EXPECT_TRUE(nearly_equal(ours[i], theirs[i], 1e-3)) << "parameter " << i;
      }
    }
  });
}

TEST(RunningMixers, PiecesEqualTheWhole) {
  const torch::NoGradGuard no_grad;
  for_each_mixer([](MixerVariant& variant) {
    const auto x = torch::randn({2, 150, kMixerWidth});
    const auto expected = whole_pass(variant, x);
    auto state = variant.mixer->new_state(2);
    const auto bytes = state->bytes();
    int64_t read = 0;
    for (const int64_t piece : {1, 2, 1, 65, 1, 64, 3, 13}) {
      const auto y = call_mixer(variant, x.narrow(1, read, piece), PositionRange(read, piece), Mask::causal(),
                                state.get());
      EXPECT_TRUE(nearly_equal(y, expected.narrow(1, read, piece))) << piece << " tokens after " << read;
      read += piece;
    }
    ASSERT_EQ(read, 150);
    EXPECT_EQ(state->bytes(), bytes);  // it does not grow
  });
}

/// Rows with a state, each with the tokens that it has read.
class RowsOfMixer {
 public:
  RowsOfMixer(MixerVariant& variant, int64_t n_rows)
      : variant_(variant), state_(variant.mixer->new_state(n_rows)), read_(static_cast<size_t>(n_rows)) {
    for (auto& row : read_) row = torch::zeros({0, kMixerWidth});
  }
  RowsOfMixer(RowsOfMixer&&) = default;

  LayerState& state() { return *state_; }
  std::vector<torch::Tensor>& read() { return read_; }
  std::vector<int64_t> lengths() const {
    std::vector<int64_t> result;
    for (const auto& row : read_) result.push_back(row.size(0));
    return result;
  }

  /// Reads counts[b] further tokens in row b, with noise in the padding, and checks the outputs.
  void read_more(const std::vector<int64_t>& counts) {
    const auto n_rows = std::ssize(counts);
    const int64_t most = *std::ranges::max_element(counts);
    const auto x = torch::randn({n_rows, most, kMixerWidth});
    const PositionRange range(lengths(), counts, most, torch::kCPU);
    const auto y = call_mixer(variant_, x, range, Mask::causal(), state_.get());
    for (int64_t b = 0; b < n_rows; ++b) {
      const auto row = static_cast<size_t>(b);
      const int64_t before = read_[row].size(0);
      read_[row] = torch::cat({read_[row], x[b].narrow(0, 0, counts[row])});
      if (counts[row] == 0) continue;
      const auto expected = whole_pass(variant_, read_[row].unsqueeze(0))[0].narrow(0, before, counts[row]);
      EXPECT_TRUE(nearly_equal(y[b].narrow(0, 0, counts[row]), expected))
          << "row " << b << " after " << before;
    }
  }

 private:
  MixerVariant& variant_;
  std::unique_ptr<LayerState> state_;
  std::vector<torch::Tensor> read_;
};

TEST(RunningMixers, RowsReadUnequalNumbersOfTokens) {
  const torch::NoGradGuard no_grad;
  for_each_mixer([](MixerVariant& variant) {
    RowsOfMixer rows(variant, 4);
    rows.read_more({3, 70, 0, 1});
    rows.read_more({1, 0, 1, 1});
    rows.read_more({2, 1, 66, 0});
    rows.read_more({1, 1, 1, 1});
    rows.read_more({0, 5, 0, 2});
  });
}

TEST(RunningMixers, StatesAreReorderedJoinedEmptiedAndCopied) {
  const torch::NoGradGuard no_grad;
  for_each_mixer([](MixerVariant& variant) {
    RowsOfMixer rows(variant, 3);
    rows.read_more({2, 5, 9});
    rows.state().reorder(torch::tensor({2, 0, 0, 1}, torch::kInt64));
    rows.read() = {rows.read()[2], rows.read()[0], rows.read()[0], rows.read()[1]};
    rows.read_more({1, 1, 0, 3});

    RowsOfMixer others(variant, 2);  // one has read nothing
    others.read_more({4, 0});
    rows.state().join(others.state());
    rows.read().insert(rows.read().end(), others.read().begin(), others.read().end());
    rows.read_more({1, 2, 0, 1, 2, 1});

    const auto lengths = rows.lengths();
    auto kept = lengths;
    kept[1] = kept[4] = 0;
    rows.state().truncate(lengths, kept);
    rows.read()[1] = rows.read()[4] = torch::zeros({0, kMixerWidth});
    rows.read_more({2, 3, 1, 1, 0, 1});

    const auto copy = rows.state().copy();
    EXPECT_EQ(copy->bytes(), rows.state().bytes());
    const auto x = torch::randn({6, 2, kMixerWidth});
    const std::vector<int64_t> counts(6, 2);
    const PositionRange range(rows.lengths(), counts, 2, torch::kCPU);
    const auto first = call_mixer(variant, x, range, Mask::causal(), copy.get());
    rows.read_more({1, 1, 1, 1, 1, 1});  // the copy goes on apart
    auto again = rows.state().copy();
    EXPECT_FALSE(nearly_equal(call_mixer(variant, x, range, Mask::causal(), again.get()), first));

    const auto longer = rows.lengths();
    auto shorter = longer;
    shorter[0] = 1;
    EXPECT_THROW(rows.state().truncate(longer, shorter), c10::Error);
    rows.read_more({1, 1, 1, 1, 1, 1});  // nothing has changed
  });
}

TEST(RunningMixers, WeightsAreThoseOfTheOutput) {
  const torch::NoGradGuard no_grad;
  for_each_mixer([](MixerVariant& variant) {
    const auto x = torch::randn({2, 70, kMixerWidth});
    for (const bool causal : {true, false}) {
      if (!causal && !variant.can_see_all) continue;
      const auto mask =
          (causal ? Mask::causal() : Mask()) & Mask::lengths(torch::tensor({70, 20}, torch::kInt64));
      const PositionRange range(0, 70);
      std::vector<torch::Tensor> maps;
      if (!variant.has_weights) {
        EXPECT_THROW(call_mixer(variant, x, range, mask, nullptr, &maps), c10::Error);
        continue;
      }
      const auto y = call_mixer(variant, x, range, mask, nullptr, &maps);
      ASSERT_EQ(maps.size(), 1U);
      ASSERT_EQ(maps[0].sizes(), (torch::IntArrayRef{2, kMixerHeads, 70, 70}));
      if (causal) {
        EXPECT_EQ(maps[0].triu(1).abs().max().item<float>(), 0);
      }
      EXPECT_EQ(maps[0][1].narrow(-1, 20, 50).abs().max().item<float>(), 0);
      if (!variant.rotary) {
        EXPECT_TRUE(nearly_equal(maps[0].sum(-1), torch::ones({2, kMixerHeads, 70})));
      }
      auto& mixer = dynamic_cast<ProjectedMixerImpl&>(*variant.mixer);
      const auto parts = mixer.qkv ? mixer.qkv->forward_parts(x) : std::vector{x, x, mixer.v(x)};
      const auto values = parts[2]
                              .view({2, 70, mixer.n_kv_heads(), 6})
                              .transpose(1, 2)
                              .repeat_interleave(kMixerHeads / mixer.n_kv_heads(), 1);
      const auto mixed = torch::matmul(maps[0], values).transpose(1, 2).flatten(2);
      EXPECT_TRUE(nearly_equal(mixer.out(mixed), y));
    }
  });
}

TEST(RunningMixers, AutocastKeepsTheSumsInFullPrecision) {
  const torch::NoGradGuard no_grad;
  for_each_mixer([](MixerVariant& variant) {
    const auto x = torch::randn({2, 70, kMixerWidth});
    const auto expected = whole_pass(variant, x);
    at::autocast::set_autocast_enabled(torch::kCPU, true);
    auto state = variant.mixer->new_state(2);
    const auto y = call_mixer(variant, x, PositionRange(0, 70), Mask::causal(), state.get());
    const bool still_on = at::autocast::is_autocast_enabled(torch::kCPU);
    at::autocast::set_autocast_enabled(torch::kCPU, false);
    at::autocast::clear_cache();
    EXPECT_TRUE(still_on);
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16);  // of the last projection
    EXPECT_EQ(dynamic_cast<RunningState&>(*state).tensor(0).scalar_type(), torch::kFloat32);
    const auto error = (y.to(torch::kFloat32) - expected).norm() / expected.norm();
    EXPECT_LT(error.item<double>(), 0.05);
  });
}

TEST(RunningMixers, OtherMasksAreRefused) {
  const auto x = torch::randn({1, 4, kMixerWidth});
  const auto mask = Mask::keep(torch::ones({4, 4}).tril());
  for_each_mixer([&](MixerVariant& variant) {
    EXPECT_THROW(variant.mixer->forward(x, {.mask = mask}), c10::Error);
    if (variant.can_see_all) return;
    EXPECT_THROW(variant.mixer->forward(x, {}), c10::Error);
  });
  EXPECT_THROW(LinearAttention(mixer_heads().dropout(0.1)), c10::Error);
  EXPECT_THROW(LinearAttention(mixer_heads().scale(1)), c10::Error);
  EXPECT_THROW(Performer(PerformerOptions(mixer_heads().dropout(0.1))), c10::Error);
  EXPECT_THROW(DeltaNet(DeltaNetOptions(kMixerWidth, 4).n_key_heads(3)), c10::Error);
}

// ---- linear attention

// The formula of Katharopoulos et al., equations 4 and 7, pair by pair.
TEST(LinearAttention, EqualsItsFormula) {
  const torch::NoGradGuard no_grad;
  LinearAttention attention(AttentionOptions(8, 1));
  const auto x = torch::randn({1, 5, 8});
  for (const bool causal : {false, true}) {
    const auto q = attention->q(x)[0], k = attention->k(x)[0], v = attention->v(x)[0];
    const auto feature = [](const torch::Tensor& u) {
      return torch::where(u > 0, u + 1, torch::exp(u));  // elu + 1
    };
    std::vector<torch::Tensor> rows;
    for (int64_t t = 0; t < 5; ++t) {
      auto above = torch::zeros({8});
      double below = 0;
      for (int64_t s = 0; s <= (causal ? t : 4); ++s) {
        const auto weight = (feature(q[t]) * feature(k[s])).sum();
        above += weight * v[s];
        below += weight.item<double>();
      }
      rows.push_back(above / below);
    }
    const auto expected = attention->out(torch::stack(rows)).unsqueeze(0);
    EXPECT_TRUE(nearly_equal(attention(x, {.mask = causal ? Mask::causal() : Mask()}), expected));
  }
}

// ---- Performer

TEST(Performer, FeaturesAreOrthogonalInBlocks) {
  const auto w = orthogonal_features(20, 8);
  ASSERT_EQ(w.sizes(), (torch::IntArrayRef{20, 8}));
  for (const auto& block : {w.narrow(0, 0, 8), w.narrow(0, 8, 8), w.narrow(0, 16, 4)}) {
    const auto products = torch::matmul(block, block.t());
    EXPECT_TRUE(nearly_equal(products, products.diag().diag()));
  }
  const auto many = orthogonal_features(4000, 8);  // no direction is preferred
  EXPECT_LT(many.mean(0).abs().max().item<double>(), 0.06);
  const auto norms = many.norm(2, 1);  // of a chi distribution: mean of squares 8
  EXPECT_NEAR(norms.square().mean().item<double>(), 8, 0.4);
  EXPECT_GT(norms.std().item<double>(), 0.5);
  EXPECT_EQ(default_features(64), 266);
  EXPECT_EQ(default_features(1), 1);
}

// The error of the estimate falls as 1/√m.
TEST(Performer, ApproachesSoftmaxAttention) {
  const torch::NoGradGuard no_grad;
  Attention exact(AttentionOptions(16, 2));
  const auto x = 0.7 * torch::randn({2, 20, 16});
  for (const bool causal : {false, true}) {
    const Mask mask = causal ? Mask::causal() : Mask();
    const auto expected = exact(x, {.mask = mask});
    const auto mean_error = [&](int64_t m) {
      constexpr int n_seeds = 40;
      double sum = 0;
      for (int seed = 0; seed < n_seeds; ++seed) {
        Performer estimate(PerformerOptions(AttentionOptions(16, 2)).n_features(m));
        for (const auto& item : exact->named_parameters())
          estimate->named_parameters()[item.key()].copy_(item.value());
        sum += (estimate(x, {.mask = mask}) - expected).square().mean().item<double>();
      }
      return std::sqrt(sum / n_seeds);
    };
    const double few = mean_error(64), many = mean_error(1024);  // four times smaller
    EXPECT_LT(many, 0.02);
    EXPECT_NEAR(few / many, 4, 1);
  }
}

// Without stabilisers, in float64; output and gradients.
TEST(Performer, EqualsItsFormula) {
  Performer performer(PerformerOptions(AttentionOptions(8, 1).scale(0.5)).n_features(20));
  performer->to(torch::kFloat64);
  const auto x = torch::randn({1, 70, 8}, torch::dtype(torch::kFloat64).requires_grad(true));
  const auto feature = [&](const torch::Tensor& u) {
    const auto scaled = u * std::sqrt(0.5);
    return (torch::matmul(scaled, performer->features.t()) - scaled.square().sum(-1, true) / 2).exp();
  };
  for (const bool causal : {false, true}) {
    auto weights = torch::matmul(feature(performer->q(x)), feature(performer->k(x)).transpose(-1, -2));
    if (causal) weights = weights.tril();
    const auto expected = performer->out(torch::matmul(weights / weights.sum(-1, true), performer->v(x)));
    const auto y = performer(x, {.mask = causal ? Mask::causal() : Mask()});
    EXPECT_TRUE(nearly_equal(y, expected));
    auto leaves = performer->parameters();
    leaves.push_back(x);
    const auto upstream = torch::sin(torch::arange(y.numel(), y.options())).view(y.sizes());
    const auto ours = torch::autograd::grad({y}, leaves, {upstream});
    const auto theirs = torch::autograd::grad({expected}, leaves, {upstream});
    // The smallest feature, 1e-6 of the largest, shifts weights by some 1e-4.
    for (size_t i = 0; i < leaves.size(); ++i)
      EXPECT_LT((ours[i] - theirs[i]).norm().item<double>(), 1e-3 * theirs[i].norm().item<double>() + 1e-6)
          << i;
  }
}

// Keys that are much longer than others neither overflow nor take all other keys to zero.
TEST(Performer, ManagesLongKeys) {
  const torch::NoGradGuard no_grad;
  Performer performer(PerformerOptions(AttentionOptions(16, 2)));
  auto x = torch::randn({1, 100, 16});
  x.select(1, 50) *= 300;
  for (const bool causal : {false, true}) {
    const auto y = performer(x, {.mask = causal ? Mask::causal() : Mask()});
    EXPECT_TRUE(y.isfinite().all().item<bool>());
  }
}

// ---- initial values

// Token by token, one head, as equation 4 of Grazzi et al. 2025 has it.
TEST(DeltaNet, NegativeEigenvaluesAreThoseOfAWrittenOutRule) {
  constexpr int64_t T = 7, D = 6;
  torch::manual_seed(5);
  DeltaNet net(DeltaNetOptions(D, 1).n_taps(0).gated(false).output_gate(false).negative_eigenvalues(true));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : net->parameters()) parameter.normal_(0, 0.8);
  net->to(torch::kFloat64);
  const auto x = torch::randn({1, T, D}, torch::kFloat64);
  const auto unit = [](const torch::Tensor& v) { return v / (v.square().sum() + 1e-6).sqrt(); };
  auto sum = torch::zeros({D, D}, torch::kFloat64);  // of v kᵀ
  std::vector<torch::Tensor> outputs;
  bool turns = false;
  for (int64_t t = 0; t < T; ++t) {
    const auto row = x[0][t];
    const auto q = unit(torch::silu(net->q(row))) / std::sqrt(double(D)), k = unit(torch::silu(net->k(row))),
               v = torch::silu(net->v(row));
    const double beta = 2 * torch::sigmoid(net->beta(row)).item<double>();
    turns = turns || beta > 1;
    sum = sum - beta * sum.matmul(k).outer(k) + beta * v.outer(k);
    outputs.push_back(sum.matmul(q));
  }
  EXPECT_TRUE(turns) << "no eigenvalue is negative here";
  const auto expected = net->out(net->norm(torch::stack(outputs)));
  EXPECT_LT((net(x, {.mask = Mask::causal()})[0] - expected).abs().max().item<double>(), 1e-9);
}

TEST(DeltaNet, InitialDecaysAreThoseOfTheReference) {
  const DeltaNet net(DeltaNetOptions(64, 32));
  const auto rates = net->a_log.exp();
  EXPECT_GT(rates.min().item<double>(), 0);
  EXPECT_LE(rates.max().item<double>(), 16);
  EXPECT_GT(rates.max().item<double>(), 8);
  const auto steps = torch::softplus(net->dt_bias);
  EXPECT_GE(steps.min().item<double>(), 0.99e-3);
  EXPECT_LE(steps.max().item<double>(), 0.101);
  EXPECT_GT(steps.max().item<double>() / steps.min().item<double>(), 5);
}

}  // namespace
}  // namespace zoo
