#include "layers/experts.h"

#include <cmath>
#include <limits>
#include <utility>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/kernels/dropout.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

/// Scores (N, E) with -∞ for the experts of all groups but the best.
torch::Tensor within_best_groups(const torch::Tensor& scores, const ExpertsOptions& options) {
  if (options.groups() == options.active_groups()) return scores;
  const auto grouped = scores.unflatten(-1, {options.groups(), -1});  // (N, G, E / G)
  const auto of_groups =
      options.group_score() == GroupScore::max ? grouped.amax(-1) : std::get<0>(grouped.topk(2, -1)).sum(-1);
  const auto best = std::get<1>(of_groups.topk(options.active_groups(), -1));
  const auto outside = torch::ones_like(of_groups, torch::kBool).scatter(-1, best, false);
  return grouped.masked_fill(outside.unsqueeze(-1), -std::numeric_limits<double>::infinity()).flatten(-2);
}

/// y, whose backward pass also adds `weight` times the gradients of `loss`.
struct WithLoss : torch::autograd::Function<WithLoss> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& y,
                               const torch::Tensor& loss, double weight) {
    context->saved_data["weight"] = weight;
    context->saved_data["type"] = loss.scalar_type();
    return y.view_as(y);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto options = gradients[0].options().dtype(context->saved_data["type"].toScalarType());
    return {gradients[0], torch::full({}, context->saved_data["weight"].toDouble(), options), {}};
  }
};

}  // namespace

ExpertsImpl::ExpertsImpl(const ExpertsOptions& options_) : options(options_) {
  const auto& expert = options.expert();
  const int64_t d_model = expert.d_model(), d_ff = expert.d_ff(), n_experts = options.count();
  TORCH_CHECK(options.active() >= 1 && options.active() <= n_experts, "a token has 1 to E experts");
  TORCH_CHECK(n_experts % options.groups() == 0, "all groups have as many experts");
  const auto maps = [&](const std::string& name, int64_t from, int64_t to, WeightUse use) {
    std::vector<LinearPart> parts;
    for (int64_t i = 0; i < n_experts; ++i)
      parts.push_back({.n_outputs = to, .use = use, .name = name + "_" + std::to_string(i)});
    return register_module(name, Linear(LinearOptions(from, std::move(parts)).bias(expert.bias())));
  };
  router = register_module("router", Linear(LinearOptions(d_model, n_experts).bias(false)));
  if (options.choice_bias()) choice_bias = register_buffer("choice_bias", torch::zeros({n_experts}));
  if (expert.activation()->is_gated()) gate = maps("gate", d_model, d_ff, WeightUse::hidden);
  up = maps("up", d_model, d_ff, WeightUse::hidden);
  down = maps("down", d_ff, d_model, WeightUse::residual_output);
  if (options.shared()) shared = register_module("shared", FeedForward(*options.shared()));
  if (options.shared_gate())
    shared_gate = register_module("shared_gate", Linear(LinearOptions(d_model, 1).bias(false)));
}

ExpertChoice ExpertsImpl::choose(const torch::Tensor& x) const {
  return choose_by(router->forward(x).to(torch::kFloat));
}

ExpertChoice ExpertsImpl::choose_by(const torch::Tensor& scores) const {
  const auto after = options.router() == Router::softmax_after_top_k;
  const auto values = after                                 ? scores
                      : options.router() == Router::sigmoid ? scores.sigmoid()
                                                            : scores.softmax(-1);
  const auto biased = choice_bias.defined() ? values.detach() + choice_bias : values.detach();
  const auto experts = std::get<1>(within_best_groups(biased, options).topk(options.active(), -1));
  auto weights = values.gather(-1, experts);
  if (after) weights = weights.softmax(-1);
  if (options.normalize()) weights = weights / (weights.sum(-1, /*keepdim=*/true) + 1e-20);
  return {.experts = experts, .weights = options.scale() == 1 ? weights : weights * options.scale()};
}

torch::Tensor ExpertsImpl::balance_loss(const torch::Tensor& scores, const torch::Tensor& experts,
                                        const torch::Tensor& lengths) const {
  const int64_t B = scores.size(0), T = scores.size(1);
  auto counts = torch::full({B, 1}, T, torch::dtype(torch::kFloat).device(scores.device()));
  auto is_token = torch::ones({B, T, 1}, counts.options());
  if (lengths.defined()) {
    counts = lengths.to(counts.options()).unsqueeze(1);
    is_token = (torch::arange(T, counts.options()) < counts).to(torch::kFloat).unsqueeze(-1);
  }
  auto loss = torch::zeros({}, counts.options());
  if (options.balance() > 0) {
    auto shares = options.router() == Router::sigmoid ? scores.sigmoid() : scores.softmax(-1);
    if (options.router() == Router::sigmoid) shares = shares / shares.sum(-1, /*keepdim=*/true);
    const auto chosen = torch::zeros_like(scores).scatter(-1, experts.view({B, T, -1}), 1.0);
    const double factor = static_cast<double>(options.count()) / static_cast<double>(options.active());
    // Σ over the tokens of a row of the same loss.
    const auto by_row = (chosen * is_token).sum(1) * factor * (shares * is_token).sum(1);  // (B, E)
    loss = loss + options.balance() * (by_row / counts.clamp_min(1)).sum();
  }
  if (options.z_loss() > 0)
    loss = loss + options.z_loss() * (scores.logsumexp(-1, /*keepdim=*/true).square() * is_token).sum();
  return loss;
}

torch::Tensor ExpertsImpl::routed(const torch::Tensor& x, const ExpertChoice& choice) {
  const auto& [experts, weights] = choice;
  const int64_t k = options.active();
  const auto flat = experts.flatten();  // (N k)
  const auto order = flat.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const auto counted = torch::bincount(flat, /*weights=*/{}, options.count()).to(torch::kCPU).contiguous();
  const std::vector<int64_t> counts(counted.const_data_ptr<int64_t>(),
                                    counted.const_data_ptr<int64_t>() + counted.numel());
  const auto sorted = x.index_select(0, order.div(k, "floor"));
  const auto& activation = *options.expert().activation();
  auto inner = up->forward_groups(sorted, counts);
  inner = gate ? activation.gated(gate->forward_groups(sorted, counts), inner) : activation(inner);
  inner = dropout(inner, is_training() ? options.expert().dropout() : 0.0);
  const auto outputs = down->forward_groups(inner, counts);
  const auto back =
      torch::empty_like(order).scatter_(0, order, torch::arange(order.numel(), order.options()));
  const auto by_token = outputs.index_select(0, back).unflatten(0, {-1, k});  // (N, k, D)
  return (by_token * weights.unsqueeze(-1).to(by_token.scalar_type())).sum(1);
}

void ExpertsImpl::count_load(const torch::Tensor& scores, const torch::Tensor& experts) {
  const torch::NoGradGuard no_grad;
  const auto log_shares = scores.detach().log_softmax(-1);
  const double entropy = -(log_shares.exp() * log_shares).sum().item<double>();
  const auto counts = torch::bincount(experts.flatten(), /*weights=*/{}, options.count()).to(torch::kCPU);
  const std::scoped_lock lock(counting_);
  tokens_of_experts_ = tokens_of_experts_.defined() ? tokens_of_experts_ + counts : counts;
  entropy_ += entropy;
}

std::optional<ExpertLoad> ExpertsImpl::take_load() {
  if (!tokens_of_experts_.defined()) return std::nullopt;
  const auto counts = std::exchange(tokens_of_experts_, {}).to(torch::kDouble);
  const double entropy = std::exchange(entropy_, 0);
  const double n_tokens = counts.sum().item<double>() / static_cast<double>(options.active());
  const double even = std::log(static_cast<double>(options.count()));
  return ExpertLoad{.busiest = (counts.max() / counts.mean()).item<double>(),
                    .idle = (counts == 0).to(torch::kDouble).mean().item<double>(),
                    .entropy = options.count() > 1 ? entropy / n_tokens / even : 1};
}

torch::Tensor ExpertsImpl::forward(const torch::Tensor& x, const torch::Tensor& lengths) {
  const auto tokens = x.flatten(0, -2);
  const auto scores = router(tokens).to(torch::kFloat);
  const auto choice = choose_by(scores);
  auto y = routed(tokens, choice).view_as(x);
  if (is_training()) count_load(scores, choice.experts);
  if (is_training() && torch::GradMode::is_enabled() && (options.balance() > 0 || options.z_loss() > 0)) {
    const auto loss = balance_loss(scores.unflatten(0, {x.size(0), -1}), choice.experts, lengths);
    y = WithLoss::apply(y, loss, loss_weight_);
  }
  if (!shared) return y;
  const auto of_all = shared(x);
  return y + (shared_gate ? shared_gate(x).sigmoid() * of_all : of_all);
}

int64_t ExpertsImpl::idle_parameters() const {
  int64_t n = 0;
  for (const auto& map : {gate, up, down}) {
    if (!map) continue;
    for (const auto& parameter : map->parameters()) n += parameter.numel();
  }
  return n / options.count() * (options.count() - options.active());
}

void ExpertsImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Experts")
                .add("count", options.count())
                .add("active", options.active())
                .add("d_ff", options.expert().d_ff())
                .add("router", options.router());
}

void count_experts(CostAccount& account, const std::string& name, const ExpertsOptions& options,
                   double n_tokens) {
  const int64_t d_model = options.expert().d_model();
  count_linear(account, account.path(name, "router"), "router",
               LinearOptions(d_model, options.count()).bias(false), n_tokens);
  count_feed_forward(account, name, options.expert(), n_tokens * static_cast<double>(options.active()));
  if (options.shared())
    count_feed_forward(account, account.path(name, "shared"), *options.shared(), n_tokens);
}

}  // namespace zoo
