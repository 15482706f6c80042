#include "layers/experts.h"

#include <cmath>
#include <limits>
#include <utility>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "kernels/dropout.h"
#include "layers/weights/construction.h"
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

/// Which of the T tokens of each row are no padding, 1 or 0: (B, T) float; and their number: (B, 1) float.
std::pair<torch::Tensor, torch::Tensor> real_tokens(const torch::Tensor& lengths, int64_t B, int64_t T,
                                                    torch::Device device) {
  const auto options = torch::dtype(torch::kFloat).device(device);
  if (!lengths.defined()) return {torch::ones({B, T}, options), torch::full({B, 1}, T, options)};
  const auto counts = lengths.to(options).unsqueeze(1);
  return {(torch::arange(T, options) < counts).to(torch::kFloat), counts};
}

/// How many of the tokens that are no padding have chosen each of E experts: (E). experts: (N, k).
torch::Tensor tokens_of(const torch::Tensor& experts, const torch::Tensor& is_token, int64_t E) {
  const auto weights = is_token.reshape({-1, 1}).expand_as(experts).flatten();
  return torch::bincount(experts.flatten(), weights, E);
}

std::vector<int64_t> as_list(const torch::Tensor& counts) {
  const auto on_cpu = counts.to(torch::kCPU, torch::kLong).contiguous();
  return {on_cpu.const_data_ptr<int64_t>(), on_cpu.const_data_ptr<int64_t>() + on_cpu.numel()};
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
  router = register_module("router", Linear(LinearOptions(d_model, n_experts).bias(options.router_bias())));
  TORCH_CHECK(options.bias_rate() == 0 || options.choice_bias(), "bias_rate changes choice_bias");
  TORCH_CHECK(options.chooser() == Chooser::tokens || (options.groups() == 1 && options.capacity() == 0),
              "experts that choose have neither groups nor another capacity");
  const auto numbers = [&](double value) {
    return drawn_tensor({n_experts}, [value](torch::Tensor& tensor) { tensor.fill_(value); });
  };
  if (options.choice_bias()) choice_bias = register_buffer("choice_bias", numbers(0));
  if (options.balance_over() == BalanceOver::step) last_share = register_buffer("last_share", numbers(1));
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
  const auto [is_real, counts] = real_tokens(lengths, B, T, scores.device());
  const auto is_token = is_real.unsqueeze(-1);
  auto loss = torch::zeros({}, counts.options());
  if (options.balance() > 0) {
    auto shares = options.router() == Router::sigmoid ? scores.sigmoid() : scores.softmax(-1);
    if (options.router() == Router::sigmoid) shares = shares / shares.sum(-1, /*keepdim=*/true);
    const auto chosen = torch::zeros_like(scores).scatter(-1, experts.view({B, T, -1}), 1.0);
    const double factor = static_cast<double>(options.count()) / static_cast<double>(options.active());
    // Σ over the tokens of a row of the same loss.
    const auto of_row = (shares * is_token).sum(1);  // (B, E)
    const auto by_row = last_share.defined()
                            ? of_row * last_share
                            : (chosen * is_token).sum(1) * factor * of_row / counts.clamp_min(1);
    loss = loss + options.balance() * by_row.sum();
  }
  if (options.z_loss() > 0)
    loss = loss + options.z_loss() * (scores.logsumexp(-1, /*keepdim=*/true).square() * is_token).sum();
  return loss;
}

torch::Tensor ExpertsImpl::outputs_of(const torch::Tensor& sorted, const std::vector<int64_t>& counts) {
  if (!exchange_) return outputs_here(sorted, counts);
  const ExpertRoute route(exchange_, counts);
  const RowScope numbered(route.first_row());
  return route.back(outputs_here(route.to_experts(sorted), route.counts()));
}

torch::Tensor ExpertsImpl::outputs_here(const torch::Tensor& sorted, const std::vector<int64_t>& counts) {
  const auto& activation = *options.expert().activation();
  auto inner = up->forward_groups(sorted, counts);
  inner = gate ? activation.gated(gate->forward_groups(sorted, counts), inner) : activation(inner);
  return down->forward_groups(dropout(inner, is_training() ? options.expert().dropout() : 0.0), counts);
}

torch::Tensor ExpertsImpl::routed(const torch::Tensor& x, const ExpertChoice& choice) {
  const auto& [experts, weights] = choice;
  const int64_t k = options.active();
  const auto flat = experts.flatten();  // (N k)
  const auto order = flat.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/false);
  const auto counts = as_list(torch::bincount(flat, /*weights=*/{}, options.count()));
  const auto outputs = outputs_of(x.index_select(0, order.div(k, "floor")), counts);
  const auto back =
      torch::empty_like(order).scatter_(0, order, torch::arange(order.numel(), order.options()));
  const auto by_token = outputs.index_select(0, back).unflatten(0, {-1, k});  // (N, k, D)
  return (by_token * weights.unsqueeze(-1).to(by_token.scalar_type())).sum(1);
}

torch::Tensor ExpertsImpl::routed(const torch::Tensor& x, const Pairs& pairs) {
  const auto outputs = outputs_of(x.index_select(0, pairs.tokens), pairs.counts);
  const auto weighted = outputs * pairs.weights.unsqueeze(-1).to(outputs.scalar_type());
  return torch::zeros({x.size(0), weighted.size(1)}, weighted.options()).index_add(0, pairs.tokens, weighted);
}

ExpertsImpl::Pairs ExpertsImpl::chosen_by_experts(const torch::Tensor& scores,
                                                  const torch::Tensor& lengths) const {
  const int64_t B = scores.size(0), T = scores.size(1);
  const auto shares = options.router() == Router::sigmoid ? scores.sigmoid() : scores.softmax(-1);
  auto values = shares.detach();
  if (choice_bias.defined()) values = values + choice_bias;
  const auto [is_token, n_tokens] = real_tokens(lengths, B, T, scores.device());
  values = values.masked_fill((is_token == 0).unsqueeze(-1), -std::numeric_limits<double>::infinity());
  const double per_token = static_cast<double>(options.active()) / static_cast<double>(options.count());
  const auto most = torch::minimum((n_tokens * per_token).ceil(), n_tokens).unsqueeze(-1);  // (B, 1, 1)
  const auto order = values.argsort(/*stable=*/true, /*dim=*/1, /*descending=*/true);       // (B, T, E)
  const auto ranks = torch::empty_like(order).scatter_(
      1, order, torch::arange(T, order.options()).view({1, T, 1}).expand_as(order).contiguous());
  const auto by_expert = (ranks < most).flatten(0, 1).t();  // (E, N)
  const auto pairs = by_expert.nonzero();                   // (P, 2): expert, token
  const auto tokens = pairs.select(1, 1).contiguous();
  const auto flat = pairs.select(1, 0) + tokens * options.count();
  return {.tokens = tokens,
          .weights = shares.flatten().index_select(0, flat) * options.scale(),
          .counts = as_list(by_expert.sum(1))};
}

torch::Tensor ExpertsImpl::within_capacity(const torch::Tensor& experts, const torch::Tensor& lengths) const {
  const int64_t B = experts.size(0), T = experts.size(1), k = experts.size(2), E = options.count();
  const auto [is_token, n_tokens] = real_tokens(lengths, B, T, experts.device());
  const auto most =
      (n_tokens * (options.capacity() * static_cast<double>(k) / static_cast<double>(E))).ceil();  // (B, 1)
  // First choices of all tokens, then second ones: (B, k T).
  const auto in_order = experts.transpose(1, 2).flatten(1).unsqueeze(-1);
  const auto places = torch::zeros({B, k * T, E}, n_tokens.options())
                          .scatter(2, in_order, is_token.repeat({1, k}).unsqueeze(-1));
  const auto ranks = places.cumsum(1).gather(2, in_order).squeeze(-1);
  return (ranks <= most).unflatten(1, {k, T}).transpose(1, 2).logical_or(is_token.unsqueeze(-1) == 0);
}

void ExpertsImpl::count_load(const torch::Tensor& scores, const torch::Tensor& is_token,
                             const torch::Tensor& counts, int64_t n_dropped) {
  const torch::NoGradGuard no_grad;
  const auto log_shares = scores.detach().log_softmax(-1);
  const double entropy = -(log_shares.exp() * log_shares * is_token.unsqueeze(-1)).sum().item<double>();
  const auto n_tokens = is_token.sum(torch::kDouble).item<double>();
  const auto on_cpu = counts.to(torch::kCPU, torch::kLong);
  const std::scoped_lock lock(counting_);
  tokens_of_experts_ = tokens_of_experts_.defined() ? tokens_of_experts_ + on_cpu : on_cpu;
  entropy_ += entropy;
  n_tokens_ += n_tokens;
  n_dropped_ += n_dropped;
}

void ExpertsImpl::begin_step() {
  tokens_of_experts_ = torch::Tensor();
  entropy_ = 0;
  n_tokens_ = 0;
  n_dropped_ = 0;
}

std::optional<ExpertLoad> ExpertsImpl::load_of_step() const {
  if (!tokens_of_experts_.defined()) return std::nullopt;
  const auto of_experts = tokens_of_experts_.to(torch::kDouble);
  const double even = std::log(static_cast<double>(options.count()));
  return ExpertLoad{
      .busiest = (of_experts.max() / of_experts.mean()).item<double>(),
      .idle = (of_experts == 0).to(torch::kDouble).mean().item<double>(),
      .entropy = options.count() > 1 ? entropy_ / n_tokens_ / even : 1,
      .dropped = static_cast<double>(n_dropped_) / (n_tokens_ * static_cast<double>(options.active()))};
}

torch::Tensor ExpertsImpl::counts() const {
  return tokens_of_experts_.defined() ? tokens_of_experts_.clone()
                                      : torch::zeros({options.count()}, torch::kLong);
}

void ExpertsImpl::end_step(const torch::Tensor& counts) {
  const torch::NoGradGuard no_grad;
  const auto share = counts.to(torch::kDouble) / counts.to(torch::kDouble).mean().clamp_min(1e-9);
  if (options.bias_rate() > 0)
    choice_bias.add_((1 - share).sign().to(choice_bias.options()), options.bias_rate());
  if (last_share.defined()) last_share.copy_(share);
}

torch::Tensor ExpertsImpl::forward(const torch::Tensor& x, const torch::Tensor& lengths) {
  const auto tokens = x.flatten(0, -2);
  const auto scores = router(tokens).to(torch::kFloat);
  const auto by_row = scores.unflatten(0, {x.size(0), -1});  // (B, T, E)
  const bool is_counted = is_training() ? loss_weight_ != 0 : counted_ == CountedPasses::all;
  const auto is_token =
      is_counted ? real_tokens(lengths, by_row.size(0), by_row.size(1), x.device()).first : torch::Tensor();
  torch::Tensor y;
  if (options.chooser() == Chooser::experts) {
    const auto pairs = chosen_by_experts(by_row, lengths);
    y = routed(tokens, pairs).view_as(x);
    if (is_counted) count_load(by_row, is_token, torch::tensor(pairs.counts, torch::kLong), 0);
  } else {
    auto choice = choose_by(scores);
    int64_t n_dropped = 0;
    if (is_training() && options.capacity() > 0) {
      const auto kept = within_capacity(choice.experts.unflatten(0, {x.size(0), -1}), lengths).flatten(0, 1);
      choice.weights = choice.weights * kept;
      n_dropped = kept.numel() - kept.sum().item<int64_t>();
    }
    y = routed(tokens, choice).view_as(x);
    if (is_counted)
      count_load(by_row, is_token, tokens_of(choice.experts, is_token, options.count()), n_dropped);
    if (is_training() && torch::GradMode::is_enabled() && (options.balance() > 0 || options.z_loss() > 0))
      y = WithLoss::apply(y, balance_loss(by_row, choice.experts, lengths), loss_weight_);
  }
  if (!shared) return y;
  const auto of_all = shared(x);
  return y + (shared_gate ? shared_gate(x).sigmoid() * of_all : of_all);
}

std::vector<std::shared_ptr<ExpertsImpl>> experts_of(const torch::nn::Module& model) {
  std::vector<std::shared_ptr<ExpertsImpl>> result;
  for (const auto& module : model.modules()) {
    if (auto experts = std::dynamic_pointer_cast<ExpertsImpl>(module)) result.push_back(std::move(experts));
  }
  return result;
}

std::vector<Linear> ExpertsImpl::maps() const {
  return gate ? std::vector<Linear>{gate, up, down} : std::vector<Linear>{up, down};
}

int64_t ExpertsImpl::idle_parameters() const {
  int64_t n = 0;
  for (const auto& map : maps()) {
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
               LinearOptions(d_model, options.count()).bias(options.router_bias()), n_tokens);
  count_feed_forward(account, name, options.expert(), n_tokens * static_cast<double>(options.active()));
  if (options.shared())
    count_feed_forward(account, account.path(name, "shared"), *options.shared(), n_tokens);
}

}  // namespace zoo
