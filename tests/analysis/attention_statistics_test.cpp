#include "analysis/attention_statistics.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/attention_rollout.h"
#include "tests/parity/reference.h"

namespace zoo {
namespace {

using ::testing::DoubleNear;
using ::testing::Optional;
using testing::ReferenceCase;

/// The statistics of one head. weights: (T, S).
HeadStatistics of_one_head(AttentionKind kind, const torch::Tensor& weights) {
  AttentionReport report;
  report.layers.push_back({kind, 0, weights.to(torch::kFloat32).unsqueeze(0)});
  const auto heads = head_statistics(report);
  EXPECT_EQ(heads.size(), 1U);
  return heads.at(0);
}

auto close_to(double value) { return Optional(DoubleNear(value, 1e-6)); }

/// Random attention weights, (H, T, S).
torch::Tensor random_weights(int64_t n_heads, int64_t T, int64_t S) {
  return torch::randn({n_heads, T, S}).mul(2).softmax(-1);
}

torch::Tensor causal(const torch::Tensor& weights) {
  const auto seen = weights.tril();
  return seen / seen.sum(-1, true);
}

TEST(HeadStatistics, OfEvenAttentionAreKnown) {
  constexpr int64_t n = 7;
  const auto even = torch::full({n, n}, 1.0 / n);
  const auto self = of_one_head(AttentionKind::encoder, even);
  EXPECT_NEAR(self.entropy.value(), std::log(n), 1e-6);
  EXPECT_THAT(self.distance, close_to((n * n - 1) / (3.0 * n)));  // the mean of |t − s| over all pairs
  EXPECT_NEAR(self.first.value(), 1.0 / n, 1e-6);
  EXPECT_THAT(self.previous, close_to(1.0 / n));
  EXPECT_THAT(self.itself, close_to(1.0 / n));
  EXPECT_FALSE(self.alignment_error);

  const auto cross = of_one_head(AttentionKind::cross, even);
  EXPECT_NEAR(cross.entropy.value(), std::log(n), 1e-6);
  EXPECT_NEAR(cross.first.value(), 1.0 / n, 1e-6);
  EXPECT_THAT(cross.alignment_error, close_to((n * n - 1) / (3.0 * n * n)));
  EXPECT_FALSE(cross.distance);
  EXPECT_FALSE(cross.previous);
  EXPECT_FALSE(cross.itself);
}

// Weights of an MLP over tokens may be negative: they have no entropy.
TEST(HeadStatistics, WeightsThatAreNoSharesHaveNoEntropy) {
  const auto head = of_one_head(AttentionKind::encoder, torch::tensor({{1.5F, -0.5F}, {0.5F, 0.5F}}));
  EXPECT_EQ(head.entropy, std::nullopt);
  EXPECT_TRUE(nlohmann::json::parse(to_json({head}))[0]["entropy"].is_null());
}

TEST(HeadStatistics, OfAHeadOnTheTokenBeforeAreKnown) {
  constexpr int64_t n = 6;
  auto before = torch::zeros({n, n});
  before[0][0] = 1;  // the first token has no previous token
  for (int64_t t = 1; t < n; ++t) before[t][t - 1] = 1;
  const auto head = of_one_head(AttentionKind::decoder, before);
  EXPECT_EQ(head.entropy, 0.0);
  EXPECT_FALSE(std::signbit(head.entropy.value()));
  EXPECT_THAT(head.previous, Optional(1.0));
  EXPECT_THAT(head.itself, close_to(1.0 / n));
  EXPECT_THAT(head.distance, close_to((n - 1.0) / n));
  EXPECT_NEAR(head.first.value(), 2.0 / n, 1e-6);  // the first token sees itself, the second sees the first
}

TEST(HeadStatistics, TellAnAlignmentFromItsMirrorImage) {
  // Twice as many source tokens: each target token looks at the two that it was written from.
  auto along = torch::zeros({3, 6});
  for (int64_t t = 0; t < 3; ++t) along[t].slice(0, 2 * t, 2 * t + 2).fill_(0.5);
  EXPECT_THAT(of_one_head(AttentionKind::cross, along).alignment_error, close_to(1.0 / 12));
  EXPECT_THAT(of_one_head(AttentionKind::cross, along.flip(0)).alignment_error,
              close_to((2.0 / 3 + 1.0 / 12 + 2.0 / 3) / 3));
  EXPECT_THAT(of_one_head(AttentionKind::cross, torch::eye(4)).alignment_error, Optional(0.0));
}

// Of three layers only the second one has its weights on the diagonal. The third has less entropy: it looks
// at the end.
TEST(AlignmentErrors, AreThoseOfTheCrossAttentionLayers) {
  constexpr int64_t n = 6;
  const auto even = torch::full({2, n, n}, 1.0F / n),
             diagonal = 0.9F * torch::eye(n).repeat({2, 1, 1}) + 0.1F * even;
  auto end = torch::zeros({2, n, n});
  end.select(2, n - 1).fill_(1);
  AttentionReport report;
  EXPECT_TRUE(alignment_errors(report).empty());
  report.layers = {{AttentionKind::encoder, 0, torch::eye(n).repeat({2, 1, 1})},
                   {AttentionKind::cross, 0, even},
                   {AttentionKind::cross, 1, diagonal},
                   {AttentionKind::cross, 2, end}};
  const auto errors = alignment_errors(report);
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_NEAR(errors[0], (n * n - 1) / (3.0 * n * n), 1e-6);
  EXPECT_NEAR(errors[1], 0.1 * errors[0], 1e-6);
  EXPECT_NEAR(errors[2], (n - 1) / (2.0 * n), 1e-6);  // the mean of (n − 1 − t) / n
}

TEST(HeadStatistics, OfOneTokenHaveNoTokenBefore) {
  const auto head = of_one_head(AttentionKind::decoder, torch::ones({1, 1}));
  EXPECT_FALSE(head.previous);
  EXPECT_THAT(head.itself, Optional(1.0));
  EXPECT_THAT(head.distance, Optional(0.0));
}

TEST(HeadStatistics, AreInTheOrderOfTheLayersAndTheirHeads) {
  torch::manual_seed(1);
  AttentionReport report;
  report.layers = {{AttentionKind::encoder, 0, random_weights(2, 4, 4)},
                   {AttentionKind::encoder, 1, random_weights(2, 4, 4)},
                   {AttentionKind::cross, 0, random_weights(3, 5, 4)}};
  const auto heads = head_statistics(report);
  ASSERT_EQ(heads.size(), 7U);
  const auto json = nlohmann::json::parse(to_json(heads));
  ASSERT_EQ(json.size(), 7U);
  size_t i = 0;
  for (const auto& layer : report.layers) {
    for (int64_t h = 0; h < layer.weights.size(0); ++h, ++i) {
      EXPECT_EQ(heads[i].kind, layer.kind);
      EXPECT_EQ(heads[i].layer, layer.layer);
      EXPECT_EQ(heads[i].head, h);
      EXPECT_EQ(heads[i].entropy, of_one_head(layer.kind, layer.weights[h]).entropy);
      EXPECT_EQ(json[i]["kind"], name_of(layer.kind));
      EXPECT_EQ(json[i]["layer"], layer.layer);
      EXPECT_EQ(json[i]["head"], h);
      EXPECT_NEAR(json[i]["entropy"].get<double>(), heads[i].entropy.value(), 5.1e-7);
      EXPECT_NEAR(json[i]["first"].get<double>(), heads[i].first.value(), 5.1e-7);
      const bool is_cross = layer.kind == AttentionKind::cross;
      for (const auto* of_self : {"distance", "previous", "itself"})
        EXPECT_EQ(json[i][of_self].is_null(), is_cross) << of_self;
      EXPECT_EQ(json[i]["alignment_error"].is_null(), !is_cross);
    }
  }
}

TEST(AttentionRollout, HasRowsThatSumToOneAndKeepsTheFutureHidden) {
  torch::manual_seed(2);
  AttentionReport report;
  for (int64_t l = 0; l < 24; ++l)
    report.layers.push_back({AttentionKind::encoder, l, random_weights(4, 9, 9)});
  for (int64_t l = 0; l < 24; ++l)
    report.layers.push_back({AttentionKind::decoder, l, causal(random_weights(4, 6, 6))});
  for (int64_t l = 0; l < 24; ++l)
    report.layers.push_back({AttentionKind::cross, l, random_weights(4, 6, 9)});
  const auto rollouts = attention_rollout(report);
  ASSERT_EQ(rollouts.size(), 24U + 24U + 1U);
  for (const auto& [kind, layer, weights] : rollouts) {
    EXPECT_LE((weights.sum(-1) - 1).abs().max().item<double>(), 1e-12) << name_of(kind) << layer;
    EXPECT_GE(weights.min().item<double>(), 0.0);
    if (kind == AttentionKind::decoder) {
      EXPECT_EQ(weights.triu(1).abs().max().item<double>(), 0.0) << layer;
      EXPECT_GT(weights.tril().select(1, 0).min().item<double>(), 0.0) << layer;
    }
  }
  EXPECT_EQ(rollouts[23].layer, 23);
  EXPECT_EQ(rollouts[24].kind, AttentionKind::decoder);
  EXPECT_EQ(rollouts[24].layer, 0);
  EXPECT_EQ(rollouts.back().kind, AttentionKind::cross);
  EXPECT_EQ(rollouts.back().layer, 23);
}

TEST(AttentionRollout, FollowsATokenThroughLayers) {
  // Every token takes half of the previous one, twice: 1 : 2 : 1 of the second previous one, the previous one
  // and itself.
  AttentionReport report;
  auto before = torch::zeros({4, 4});
  before[0][0] = 1;
  for (int64_t t = 1; t < 4; ++t) before[t][t - 1] = 1;
  for (int64_t l = 0; l < 2; ++l) report.layers.push_back({AttentionKind::decoder, l, before.unsqueeze(0)});
  const auto rollouts = attention_rollout(report);
  ASSERT_EQ(rollouts.size(), 2U);
  EXPECT_TRUE(torch::equal(rollouts[0].weights[3], torch::tensor({0.0, 0.0, 0.5, 0.5}, torch::kFloat64)));
  EXPECT_TRUE(torch::equal(rollouts[1].weights[3], torch::tensor({0.0, 0.25, 0.5, 0.25}, torch::kFloat64)));
  EXPECT_TRUE(torch::equal(rollouts[1].weights[0], torch::tensor({1.0, 0.0, 0.0, 0.0}, torch::kFloat64)));
}

/// A report with the inputs of a reference case.
AttentionReport report_of(const ReferenceCase& reference) {
  AttentionReport report;
  for (const auto kind : {AttentionKind::encoder, AttentionKind::decoder, AttentionKind::cross}) {
    const auto layers = reference.get("input/" + std::string(name_of(kind)));
    for (int64_t l = 0; l < layers.size(0); ++l) report.layers.push_back({kind, l, layers[l]});
  }
  return report;
}

class AttentionAnalysis : public testing::ReferenceTest {
 protected:
  AttentionAnalysis() : ReferenceTest("reference_attention_analysis.py") {}
};

TEST_F(AttentionAnalysis, IsThatOfTheReference) {
  for (const auto* name : {"texts", "short", "one_token"}) {
    SCOPED_TRACE(name);
    const ReferenceCase reference(file(name));
    const auto report = report_of(reference);
    for (const auto& head : head_statistics(report)) {
      const auto what = std::string(name_of(head.kind));
      const auto expected = reference.output(what + "_statistics")[head.layer][head.head];
      const std::vector<std::optional<double>> actual = {head.entropy,  head.distance, head.first,
                                                         head.previous, head.itself,   head.alignment_error};
      for (size_t i = 0; i < actual.size(); ++i) {
        const double value = expected[static_cast<int64_t>(i)].item<double>();
        ASSERT_EQ(actual[i].has_value(), !std::isnan(value)) << what << " number " << i;
        if (actual[i]) {
          EXPECT_NEAR(*actual[i], value, 1e-6) << what << " number " << i;
        }
      }
    }
    std::map<AttentionKind, int64_t> counts;
    for (const auto& [kind, layer, weights] : attention_rollout(report)) {
      const auto what = std::string(name_of(kind)) + "_rollout";
      testing::expect_close(weights, reference.output(what)[counts[kind]++], what, 1e-6);
    }
    EXPECT_EQ(counts[AttentionKind::encoder], 4);
    EXPECT_EQ(counts[AttentionKind::decoder], 3);
    EXPECT_EQ(counts[AttentionKind::cross], 1);
  }
}

}  // namespace
}  // namespace zoo
