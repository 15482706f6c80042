// Mixtures of experts against a loop over tokens.

#include "layers/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/weights/weights.h"

namespace zoo {
namespace {

constexpr int64_t kTokenWidth = 6, kInnerWidth = 5, kExperts = 8, kActive = 3;

ExpertsOptions some_experts(Activation activation = Activation::swiglu) {
  return {FeedForwardOptions(kTokenWidth, kInnerWidth)
              .activation(activation)
              .bias(activation == Activation::gelu),
          kExperts, kActive};
}

Experts random_experts(const ExpertsOptions& options) {
  torch::manual_seed(7);
  Experts experts(options);
  for (auto& parameter : experts->parameters()) parameter.detach().normal_(0, 0.7);
  if (experts->choice_bias.defined()) experts->choice_bias.normal_(0, 0.3);
  experts->eval();
  return experts;
}

/// What expert `e` says of x (D).
torch::Tensor said(const Experts& experts, int64_t e, const torch::Tensor& x) {
  const auto part = [&](const Linear& map, const torch::Tensor& input, int64_t width) {
    const auto rows = map->matrix().parameter().narrow(0, e * width, width);
    const auto y = rows.mv(input);
    return map->bias.defined() ? y + map->bias.narrow(0, e * width, width) : y;
  };
  const auto up = part(experts->up, x, kInnerWidth);
  const auto& activation = *experts->options.expert().activation();
  const auto inner = experts->gate ? activation(part(experts->gate, x, kInnerWidth)) * up : activation(up);
  return part(experts->down, inner, kTokenWidth);
}

/// The k best experts of one token, as the papers choose them, the best first.
std::vector<int64_t> best_experts(const ExpertsOptions& options, const torch::Tensor& scores) {
  const int64_t in_group = options.count() / options.groups();
  std::vector<std::pair<double, int64_t>> groups;
  for (int64_t g = 0; g < options.groups(); ++g) {
    const auto best = std::get<0>(scores.narrow(0, g * in_group, in_group).sort(0, /*descending=*/true));
    const bool two = options.group_score() == GroupScore::top_two;
    groups.emplace_back(-best.narrow(0, 0, two ? 2 : 1).sum().item<double>(), g);
  }
  std::ranges::sort(groups);
  std::vector<std::pair<double, int64_t>> candidates;
  for (int64_t i = 0; i < options.active_groups(); ++i) {
    for (int64_t e = 0; e < in_group; ++e) {
      const int64_t expert = groups[static_cast<size_t>(i)].second * in_group + e;
      candidates.emplace_back(-scores[expert].item<double>(), expert);
    }
  }
  std::ranges::sort(candidates);
  std::vector<int64_t> best;
  for (int64_t i = 0; i < options.active(); ++i) best.push_back(candidates[static_cast<size_t>(i)].second);
  return best;
}

/// The layer's output for one token x (D).
torch::Tensor token_by_token(Experts experts, const torch::Tensor& x) {
  const auto& options = experts->options;
  const auto scores = experts->router->matrix().parameter().mv(x);
  const bool after = options.router() == Router::softmax_after_top_k;
  const auto values = after                                 ? scores
                      : options.router() == Router::sigmoid ? scores.sigmoid()
                                                            : scores.softmax(0);
  const auto best = best_experts(options, options.choice_bias() ? values + experts->choice_bias : values);
  auto weights = values.index_select(0, torch::tensor(best));
  if (after) weights = weights.softmax(0);
  if (options.normalize()) weights = weights / weights.sum();
  auto y = torch::zeros({kTokenWidth});
  for (size_t i = 0; i < best.size(); ++i)
    y = y + options.scale() * weights[static_cast<int64_t>(i)] * said(experts, best[i], x);
  if (!experts->shared) return y;
  auto shared = experts->shared(x);
  if (experts->shared_gate) shared = shared * experts->shared_gate->forward(x).sigmoid();
  return y + shared;
}

std::vector<torch::Tensor> gradients_of(const torch::Tensor& loss, std::vector<torch::Tensor>& inputs) {
  for (auto& input : inputs) input.mutable_grad().reset();
  loss.backward();
  std::vector<torch::Tensor> gradients;
  for (const auto& input : inputs) gradients.push_back(input.grad().clone());
  return gradients;
}

std::vector<ExpertsOptions> kinds() {
  const auto shared = FeedForwardOptions(kTokenWidth, 4).activation(Activation::swiglu).bias(false);
  return {some_experts(),
          some_experts().normalize(true),
          some_experts(Activation::gelu).router(Router::softmax_after_top_k),
          some_experts().router(Router::sigmoid).normalize(true).scale(2.5).choice_bias(true),
          some_experts().groups(4).active_groups(2),
          some_experts().groups(4).active_groups(2).group_score(GroupScore::top_two).choice_bias(true),
          some_experts().shared(shared),
          some_experts().shared(shared).shared_gate(true)};
}

TEST(Experts, AreTheSumOfTheChosenNetworks) {
  for (const auto& options : kinds()) {
    auto experts = random_experts(options);
    SCOPED_TRACE(static_cast<int>(options.router()));
    const auto x = torch::randn({3, 5, kTokenWidth});
    auto a = x.clone().requires_grad_(), b = x.clone().requires_grad_();
    const auto found = experts(a);
    std::vector<torch::Tensor> rows;
    for (const auto& row : b.flatten(0, 1).unbind()) rows.push_back(token_by_token(experts, row));
    const auto expected = torch::stack(rows).view_as(x);
    EXPECT_TRUE(torch::allclose(found, expected, 1e-5, 1e-5)) << (found - expected).abs().max();

    const auto upstream = torch::randn_like(x);
    const auto parameters = experts->parameters();
    auto inputs = parameters;
    inputs.push_back(a);
    const auto gradients = gradients_of((found * upstream).sum(), inputs);
    inputs.back() = b;
    const auto wanted = gradients_of((expected * upstream).sum(), inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_TRUE(torch::allclose(gradients[i], wanted[i], 1e-4, 1e-5)) << "input " << i;
  }
}

// A token gets the same whatever stands beside it.
TEST(Experts, ATokenDoesNotDependOnItsCompany) {
  const torch::NoGradGuard no_grad;
  for (const auto& options : kinds()) {
    auto experts = random_experts(options);
    const auto x = torch::randn({40, 1, kTokenWidth});
    const auto together = experts(x);
    for (int64_t i = 0; i < x.size(0); ++i)
      EXPECT_TRUE(torch::allclose(experts(x.narrow(0, i, 1)), together.narrow(0, i, 1), 1e-5, 1e-6));
  }
}

// The gradients are those of the objective plus the losses, whichever rows go through the layer together.
TEST(Experts, TrainingAddsLossesOfBalance) {
  const auto x = torch::randn({3, 5, kTokenWidth}), upstream = torch::randn({3, 5, kTokenWidth});
  const auto lengths = torch::tensor({5, 2, 4});
  const double balance = 0.3, z_loss = 0.2, weight = 0.25;
  for (const auto router : {Router::softmax, Router::sigmoid}) {
    auto experts = random_experts(some_experts().router(router).balance(balance).z_loss(z_loss));
    experts->train();
    experts->weigh_losses(weight);
    auto parameters = experts->parameters();
    const auto found = gradients_of((experts(x, lengths) * upstream).sum(), parameters);

    auto by_rows =
        gradients_of((experts(x.narrow(0, 0, 1), lengths.narrow(0, 0, 1)) * upstream[0]).sum(), parameters);
    const auto others = gradients_of(
        (experts(x.narrow(0, 1, 2), lengths.narrow(0, 1, 2)) * upstream.narrow(0, 1, 2)).sum(), parameters);
    for (size_t i = 0; i < by_rows.size(); ++i) by_rows[i] += others[i];

    auto loss = (experts->forward(x, lengths).detach() * 0).sum();
    for (int64_t b = 0; b < 3; ++b) {
      const int64_t n = lengths[b].item<int64_t>();
      const auto scores = experts->router(x[b].narrow(0, 0, n));
      auto shares = router == Router::softmax ? scores.softmax(-1) : scores.sigmoid();
      shares = shares / shares.sum(-1, true);
      auto f = torch::zeros({kExperts});
      const auto chosen = experts->choose(x[b].narrow(0, 0, n)).experts;
      for (const auto& e : chosen.flatten().unbind()) f[e.item<int64_t>()] += 1.0 / static_cast<double>(n);
      const auto row = (f * (static_cast<double>(kExperts) / kActive) * shares.mean(0)).sum();
      loss = loss +
             weight * (static_cast<double>(n) * balance * row + z_loss * scores.logsumexp(-1).square().sum());
    }
    experts->eval();
    const auto expected = gradients_of((experts(x) * upstream).sum() + loss, parameters);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(torch::allclose(found[i], expected[i], 1e-4, 1e-5)) << i;
      EXPECT_TRUE(torch::allclose(by_rows[i], expected[i], 1e-4, 1e-5)) << i;
    }
  }
}

TEST(Experts, TrainingCountsTheirLoad) {
  auto experts = random_experts(some_experts());
  const auto x = torch::randn({2, 9, kTokenWidth});
  experts(x);
  EXPECT_FALSE(experts->load_of_step()) << "only training is counted";
  experts->train();
  const auto chosen = experts->choose(x.flatten(0, 1)).experts;
  const auto shares = experts->router(x.flatten(0, 1)).softmax(-1);
  const auto counts = torch::bincount(chosen.flatten(), {}, kExperts).to(torch::kDouble);
  for (int64_t i = 0; i < 2; ++i) experts(x.narrow(0, i, 1));
  const auto load = experts->load_of_step().value();
  EXPECT_DOUBLE_EQ(load.busiest, counts.max().item<double>() / (18.0 * kActive / kExperts));
  EXPECT_DOUBLE_EQ(load.idle, (counts == 0).sum().item<double>() / kExperts);
  EXPECT_NEAR(load.entropy, (-(shares * shares.log()).sum(-1).mean() / std::log(kExperts)).item<double>(),
              1e-5);
  experts->begin_step();
  EXPECT_FALSE(experts->load_of_step());
  experts->weigh_losses(0);
  experts(x);
  EXPECT_FALSE(experts->load_of_step()) << "such passes are no part of a step";
}

TEST(Experts, PaddingIsNoLoadAndEvaluationMayBeCounted) {
  for (const auto chooser : {Chooser::tokens, Chooser::experts}) {
    auto experts = random_experts(some_experts().chooser(chooser));
    const auto x = torch::randn({2, 9, kTokenWidth});
    const auto longer = torch::cat({x, torch::randn({2, 3, kTokenWidth})}, 1);
    const auto load_of = [&](const torch::Tensor& rows, const torch::Tensor& lengths) {
      experts->begin_step();
      experts(rows, lengths);
      return std::pair(experts->counts(), experts->load_of_step().value());
    };
    experts->train();
    const auto [counts, load] = load_of(x, {});
    const auto [padded_counts, padded] = load_of(longer, torch::tensor({9, 9}));
    EXPECT_TRUE(torch::equal(counts, padded_counts));
    EXPECT_NEAR(load.entropy, padded.entropy, 1e-6);
    experts->eval();
    experts->count(CountedPasses::all);
    EXPECT_TRUE(torch::equal(load_of(x, {}).first, counts));
    experts->count(CountedPasses::training);
    experts->begin_step();
    experts(x);
    EXPECT_FALSE(experts->load_of_step());
  }
}

// Each expert takes the tokens of a row that suit it best, and padding never.
TEST(Experts, MayChooseTheirTokens) {
  const torch::NoGradGuard no_grad;
  const auto lengths = torch::tensor({9, 5});
  for (const auto router : {Router::softmax, Router::sigmoid}) {
    auto experts = random_experts(some_experts().router(router).chooser(Chooser::experts));
    const auto x = torch::randn({2, 9, kTokenWidth});
    const auto found = experts(x, lengths);
    for (int64_t b = 0; b < 2; ++b) {
      const int64_t n = lengths[b].item<int64_t>();
      const auto row = x[b].narrow(0, 0, n);
      const auto scores = experts->router(row);
      const auto shares = router == Router::softmax ? scores.softmax(-1) : scores.sigmoid();  // (n, E)
      auto expected = torch::zeros_like(row);
      const auto most = (n * kActive + kExperts - 1) / kExperts;
      for (int64_t e = 0; e < kExperts; ++e) {
        const auto best = std::get<1>(shares.select(1, e).topk(most));
        for (int64_t i = 0; i < most; ++i) {
          const auto t = best[i].item<int64_t>();
          expected[t] += shares[t][e] * said(experts, e, row[t]);
        }
      }
      EXPECT_TRUE(torch::allclose(found[b].narrow(0, 0, n), expected, 1e-4, 1e-5));
      // Neither padding nor another row changes what a row gets.
      EXPECT_TRUE(torch::allclose(experts(row.unsqueeze(0))[0], found[b].narrow(0, 0, n), 1e-5, 1e-6));
    }
  }
}

TEST(Experts, DropWhatIsBeyondTheirCapacityInTrainingAlone) {
  const torch::NoGradGuard no_grad;
  auto experts = random_experts(some_experts().capacity(0.5));
  const auto x = torch::randn({2, 9, kTokenWidth});
  const auto lengths = torch::tensor({9, 5});
  auto unlimited = random_experts(some_experts());
  EXPECT_TRUE(torch::equal(experts(x, lengths), unlimited(x, lengths)));

  experts->train();
  const auto found = experts(x, lengths);
  double n_dropped = 0;
  for (int64_t b = 0; b < 2; ++b) {
    const int64_t n = lengths[b].item<int64_t>();
    const auto row = x[b].narrow(0, 0, n);
    const auto choice = experts->choose(row);
    const auto most = static_cast<int64_t>(std::ceil(0.5 * static_cast<double>(kActive * n) / kExperts));
    std::vector<int64_t> taken(kExperts, 0);
    auto expected = torch::zeros_like(row);
    for (int64_t i = 0; i < kActive; ++i) {
      for (int64_t t = 0; t < n; ++t) {
        const auto e = choice.experts[t][i].item<int64_t>();
        if (++taken[static_cast<size_t>(e)] <= most)
          expected[t] += choice.weights[t][i] * said(experts, e, row[t]);
        else
          ++n_dropped;
      }
    }
    EXPECT_TRUE(torch::allclose(found[b].narrow(0, 0, n), expected, 1e-4, 1e-5));
  }
  EXPECT_GT(n_dropped, 0);
  EXPECT_NEAR(experts->load_of_step()->dropped, n_dropped / (14.0 * kActive), 1e-9);
}

TEST(Experts, ABiasMovesTokensToIdleExperts) {
  auto experts = random_experts(some_experts().router(Router::sigmoid).choice_bias(true).bias_rate(0.01));
  experts->choice_bias.zero_();
  experts->end_step(torch::tensor({9, 0, 3, 3, 3, 3, 3, 0}, torch::kLong).narrow(0, 0, kExperts));
  const auto counts = torch::tensor({9, 0, 3, 3, 3, 3, 3, 0}, torch::kDouble).narrow(0, 0, kExperts);
  const auto expected = 0.01 * (counts.mean() - counts).sign();
  EXPECT_TRUE(torch::allclose(experts->choice_bias, expected.to(torch::kFloat)));
  // Over many steps on the same tokens the load becomes even.
  torch::manual_seed(4);
  const auto x = torch::randn({16, 8, kTokenWidth});
  experts->choice_bias.zero_();
  experts->choice_bias[0] = 1;  // all tokens have expert 0
  experts->train();
  std::vector<double> busiest;
  for (int i = 0; i < 200; ++i) {
    experts->begin_step();
    experts(x);
    busiest.push_back(experts->load_of_step()->busiest);
    experts->end_step(experts->counts());
  }
  EXPECT_GT(busiest.front(), 1.5);
  EXPECT_LT(busiest.back(), 1.2);
}

TEST(Experts, BalanceMayBeOverTheLastStep) {
  auto experts = random_experts(some_experts().balance(0.3).balance_over(BalanceOver::step));
  experts->train();
  experts->weigh_losses(0.25);
  const auto x = torch::randn({3, 5, kTokenWidth}), upstream = torch::randn({3, 5, kTokenWidth});
  experts(x);
  experts->end_step(experts->counts());
  const auto chosen = experts->choose(x.flatten(0, 1)).experts;
  const auto counts = torch::bincount(chosen.flatten(), {}, kExperts).to(torch::kFloat);
  EXPECT_TRUE(torch::allclose(experts->last_share, counts / counts.mean()));
  auto parameters = experts->parameters();
  const auto found = gradients_of((experts(x) * upstream).sum(), parameters);
  const auto loss = 0.25 * 0.3 * (experts->router(x).softmax(-1) * experts->last_share).sum();
  experts->eval();
  const auto expected = gradients_of((experts(x) * upstream).sum() + loss, parameters);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(torch::allclose(found[i], expected[i], 1e-4, 1e-5)) << i;
}

TEST(Experts, MayBeStoredInFewerBits) {
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 7, kTokenWidth});
  for (const auto format : {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
    SCOPED_TRACE(static_cast<int>(format));
    auto experts = random_experts(some_experts().router(Router::softmax_after_top_k));
    const auto before = experts(x);
    store_weights(*experts, format);
    const auto after = experts(x);
    const double most = format == WeightFormat::int4 ? 0.3 : 0.1;
    EXPECT_LT((after - before).norm().item<double>(), most * before.norm().item<double>());
    EXPECT_FALSE(torch::equal(after, before));
    // The numbers that are stored, in fp32. Products with whole numbers also round their inputs to eight
    // bits.
    auto plain = random_experts(some_experts().router(Router::softmax_after_top_k));
    const auto maps_of = [](const Experts& one) {
      return std::vector<Linear>{one->router, one->gate, one->up, one->down};
    };
    const auto stored = maps_of(experts), whole = maps_of(plain);
    for (size_t i = 0; i < stored.size(); ++i)
      whole[i]->matrix().parameter().detach().copy_(stored[i]->matrix().values());
    const double rounding = format == WeightFormat::bf16 ? 1e-5 : 0.02;
    EXPECT_LT((plain(x) - after).norm().item<double>(), rounding * after.norm().item<double>());
  }
}

TEST(LinearGroups, AreThePartsWithTheirRows) {
  torch::manual_seed(3);
  Linear map(LinearOptions(
      4, {{.n_outputs = 3, .name = "a"}, {.n_outputs = 3, .name = "b"}, {.n_outputs = 3, .name = "c"}}));
  const auto x = torch::randn({6, 4});
  const std::vector<int64_t> counts{4, 0, 2};
  const auto expected = [&] {
    return torch::cat({map->forward_some(x.narrow(0, 0, 4), {.first = 0, .count = 1}),
                       map->forward_some(x.narrow(0, 4, 2), {.first = 2, .count = 1})});
  };
  EXPECT_TRUE(torch::allclose(map->forward_groups(x, counts), expected()));
  EXPECT_EQ(map->forward_groups(x.narrow(0, 0, 0), {0, 0, 0}).sizes(), (std::vector<int64_t>{0, 3}));
  map->add_adapter(2, {.rank = 2});
  for (auto& parameter : map->named_parameters())
    if (parameter.key().starts_with("lora_b")) parameter.value().detach().normal_();
  EXPECT_TRUE(torch::allclose(map->forward_groups(x, counts), expected()));
  EXPECT_THROW(map->forward_groups(x, {6}), c10::Error);
}

}  // namespace
}  // namespace zoo
