#include "costs/part_card.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "data/batch.h"
#include "models/config/layer_types.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "models/mixers/mixers.h"

namespace zoo {
namespace {

constexpr int64_t kVocabulary = 61, kLength = 48;
/// The largest difference, relative to the largest output, that rounding may make.
constexpr double kRounding = 2e-5;

ModelConfig config_with(ProbedPart part, const Selection& selection, Architecture role) {
  ModelConfig config;
  config.architecture = role;
  config.d_model = 32;
  config.n_layers = 2;
  config.n_heads = 4;
  config.d_ff = 64;
  config.max_positions = 1024;
  config.vocab_size = kVocabulary;
  config.dropout = 0;
  config.position = Position::none;
  switch (part) {
    case ProbedPart::attention:
      config.attention = {selection};
      break;
    case ProbedPart::norm:
      config.norm = selection;
      break;
    case ProbedPart::activation:
      config.activation = selection;
      break;
    case ProbedPart::position:
      config.position = selection;
      break;
  }
  return config;
}

ModelPurpose purpose_of(Architecture role) {
  return {.head = role == Architecture::decoder ? HeadKind::language_modeling
                                                : HeadKind::masked_language_modeling,
          .vocab_size = kVocabulary};
}

double largest(const torch::Tensor& x) { return x.numel() == 0 ? 0 : x.abs().max().item<double>(); }

/// The one length of rows that a mixer is made for; nothing: any.
std::optional<int64_t> fixed_length(const ModelConfig& config) {
  const auto& type = mixer_types().at(config.attention.front());
  if (!type.n_tokens) return std::nullopt;
  return type.n_tokens({.model = config, .role = StackRole::encoder, .layer = 0});
}

/// The largest difference, relative to the largest output.
double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return largest(a - b) / std::max(largest(a), 1e-30);
}

/// "by at most 2e-7 of the largest", or "not at all".
std::string by_at_most(double change) {
  return change == 0 ? std::string("not at all") : fmt::format("by at most {:.2g} of the largest", change);
}

Holds holds_if(bool holds) { return holds ? Holds::yes : Holds::no; }

/// The checks of one model.
class Prober {
 public:
  Prober(const ModelConfig& config, Architecture role, uint64_t seed)
      : config_(config), role_(role), name_(name_of(role)), length_(fixed_length(config).value_or(kLength)) {
    torch::manual_seed(seed);
    model_ = initialized_model(config, purpose_of(role));
    model_->eval();
    const torch::NoGradGuard no_grad;
    // Initial weights leave parts without effect: residual outputs are small, gates and shifts are zero.
    for (auto& parameter : model_->parameters()) parameter.add_(torch::randn_like(parameter), 0.15);
    ids_ = torch::randint(kVocabulary, {1, length_}, torch::kInt64);
  }

  std::vector<PartCheck> checks() {
    const bool decodes = role_ == Architecture::decoder;
    if (decodes) causality();
    reach();
    order();
    if (!fixed_length(config_)) padding();
    if (decodes) {
      in_pieces("stepwise", std::vector<int64_t>(length_, 1), "one token after the other");
      in_pieces("pieces", {11, length_ - 11}, "in two pieces");
    }
    company();
    copy();
    gradients();
    training();
    return std::move(checks_);
  }

 private:
  void add(std::string check, Holds holds, double value, std::string says) {
    checks_.push_back(
        {.name = std::move(check), .role = name_, .holds = holds, .says = std::move(says), .value = value});
  }

  /// (B, T, D)
  torch::Tensor outputs(Model& model, const torch::Tensor& ids, const torch::Tensor& lengths = {}) const {
    const InferenceScope scope(model);
    return model.hidden_states({.input = {.ids = ids, .lengths = lengths}});
  }
  torch::Tensor outputs(const torch::Tensor& ids, const torch::Tensor& lengths = {}) const {
    return outputs(*model_, ids, lengths);
  }
  /// The ids with another token at `t`.
  torch::Tensor changed(int64_t t) const {
    auto ids = ids_.clone();
    ids[0][t] = (ids[0][t] + 1 + t % (kVocabulary - 1)) % kVocabulary;
    return ids;
  }

  void causality() {
    const auto whole = outputs(ids_);
    double most = 0;
    for (int64_t t = 1; t < length_; ++t) {
      const auto other = outputs(changed(t));
      most = std::max(most, largest((whole - other).narrow(1, 0, t)) / largest(whole));
    }
    add("causal", holds_if(most <= kRounding), most,
        "another token changes earlier outputs " + by_at_most(most));
  }

  void reach() {
    const int64_t at = role_ == Architecture::decoder ? length_ - 1 : length_ / 2;
    const auto whole = outputs(ids_);
    int64_t seen = 0;
    for (int64_t t = 0; t < length_; ++t)
      seen += largest((whole - outputs(changed(t))).select(1, at)) > kRounding * largest(whole) ? 1 : 0;
    add("reach", Holds::none, static_cast<double>(seen),
        fmt::format("two layers see {} of {} tokens from position {}", seen, length_, at));
  }

  void order() {
    const int64_t at = length_ - 1;
    auto swapped = ids_.clone();
    swapped[0][at - 2] = ids_[0][at - 3];
    swapped[0][at - 3] = ids_[0][at - 2];
    if (torch::equal(swapped, ids_)) swapped[0][at - 2] = (ids_[0][at - 2] + 1) % kVocabulary;
    const auto change = largest((outputs(ids_) - outputs(swapped)).select(1, at)) / largest(outputs(ids_));
    add("order", Holds::none, change,
        change > kRounding ? "two tokens that change places change the outputs of others"
                           : "two tokens that change places change no other output");
  }

  void padding() {
    const int64_t n = length_ - 11;
    const auto alone = outputs(ids_.narrow(1, 0, n));
    const auto padded = outputs(ids_, torch::tensor({n}, torch::kInt64)).narrow(1, 0, n);
    const double change = difference(alone, padded);
    add("padding", holds_if(change <= kRounding), change,
        fmt::format("{} tokens behind the end change outputs {}", length_ - n, by_at_most(change)));
  }

  void in_pieces(std::string check, const std::vector<int64_t>& pieces, std::string_view how) {
    const auto whole = model_->logits(outputs(ids_)).detach();  // (1, T, V)
    const InferenceScope scope(*model_);
    auto& generative = *model_->generative();
    auto state = generative.begin({.input = {.ids = ids_}});
    double most = 0;
    int64_t first = 0;
    for (const int64_t n : pieces) {
      const auto logits =
          generative.forward({.ids = ids_.narrow(1, first, n)}, state, LogitsAt::every_token());
      most = std::max(most, largest(logits - whole[0].narrow(0, first, n)) / largest(whole));
      first += n;
    }
    add(std::move(check), holds_if(most <= 10 * kRounding), most,
        fmt::format("logits of a row that is read {} differ {}", how, by_at_most(most)));
  }

  void company() {
    const auto rows = torch::cat({ids_, torch::randint(kVocabulary, {3, length_}, torch::kInt64)});
    const auto alone = outputs(ids_), beside = outputs(rows).narrow(0, 0, 1);
    const double change = difference(alone, beside);
    add("company", holds_if(change <= kRounding), change,
        "three rows beside a row change it " + by_at_most(change));
  }

  void copy() {
    const auto other = copy_of(model_);
    const bool same = torch::equal(outputs(ids_), outputs(*other, ids_));
    add("copy", holds_if(same), 0, same ? "a copy has the same outputs" : "a copy has other outputs");
  }

  /// Σ of the outputs, each times a fixed number.
  torch::Tensor weighted(Model& model, const torch::Tensor& weights) const {
    return (model.hidden_states({.input = {.ids = ids_}}) * weights).sum();
  }

  /// In double precision, so that steps can be small enough for any curvature. What a part computes in single
  /// precision needs larger ones.
  void gradients() {
    const auto model = copy_of(model_);
    model->to(torch::kDouble);
    const auto weights = torch::randn_like(outputs(ids_)).to(torch::kDouble);
    weighted(*model, weights).backward();
    std::vector<torch::Tensor> parameters, directions;
    double slope = 0;
    for (const auto& parameter : model->parameters()) {
      if (!parameter.grad().defined()) continue;
      parameters.push_back(parameter.detach());
      directions.push_back(torch::randn_like(parameters.back()));
      slope += (parameter.grad() * directions.back()).sum().item<double>();
    }
    const torch::NoGradGuard no_grad;
    const auto at = [&](double step) {
      for (size_t i = 0; i < parameters.size(); ++i) parameters[i].add_(directions[i], step);
      const double value = weighted(*model, weights).item<double>();
      for (size_t i = 0; i < parameters.size(); ++i) parameters[i].sub_(directions[i], step);
      return value;
    };
    double best = std::numeric_limits<double>::infinity();
    // Rounding spoils small steps, curvature and kinks large ones.
    for (const double h : {1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8}) {
      const double quotient = (at(h) - at(-h)) / (2 * h);
      best = std::min(best, std::abs(quotient - slope) / std::max(std::abs(slope), 1e-6));
    }
    add("gradients", holds_if(best <= 5e-3), best,
        fmt::format("the slope along a random direction is {:.4g}, {:.2g} of it from the difference quotient",
                    slope, best));
  }

  void training() {
    torch::manual_seed(2);
    const auto model = initialized_model(config_, purpose_of(role_));
    const auto targets = (ids_[0] * 7 + 3).remainder(kVocabulary);  // needs no other token
    torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(5e-3));
    const Batch batch{
        .input = {.ids = ids_}, .targets = targets, .positions = torch::arange(length_, torch::kInt64)};
    double first = 0, last = 0;
    constexpr int n_steps = 40;
    for (int i = 0; i < n_steps; ++i) {
      optimizer.zero_grad();
      const auto loss = torch::nn::functional::cross_entropy(model->logits(model->features(batch)), targets);
      loss.backward();
      optimizer.step();
      last = loss.item<double>();
      if (i == 0) first = last;
    }
    add("training", holds_if(last < 0.5 * first), last / first,
        fmt::format("{} steps take the loss of a batch from {:.2f} to {:.2f}", n_steps, first, last));
  }

  ModelConfig config_;
  Architecture role_;
  std::string name_;
  int64_t length_;  // T
  std::shared_ptr<Model> model_;
  torch::Tensor ids_;  // (1, T)
  std::vector<PartCheck> checks_;
};

/// The curves that say something of the part.
std::set<ScalingPart> curves_of(ProbedPart part) {
  switch (part) {
    case ProbedPart::norm:
      return {ScalingPart::norm};
    case ProbedPart::activation:
      return {ScalingPart::feed_forward};
    default:
      return {ScalingPart::attention, ScalingPart::training, ScalingPart::decoding};
  }
}

/// Why no model of this role may have the part; nothing: it may.
std::optional<std::string> why_not(const ModelConfig& config, Architecture role) {
  try {
    check_model(config, purpose_of(role));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace

const TypeList& types_of(ProbedPart part) {
  switch (part) {
    case ProbedPart::attention:
      return mixer_types();
    case ProbedPart::norm:
      return norm_types();
    case ProbedPart::activation:
      return activation_types();
    case ProbedPart::position:
      return position_types();
  }
  throw UsageError("there is no such part");
}

bool PartCard::all_hold() const {
  return std::ranges::none_of(checks, [](const auto& check) { return check.holds == Holds::no; });
}

PartCard probe(ProbedPart part, const Selection& selection, const ProbeOptions& options) {
  const auto types = types_of(part).infos();
  PartCard card{.part = part,
                .name = selection.type,
                .type = to_text(selection),
                .doc = (*std::ranges::find(types, selection.type, &TypeInfo::name))->doc,
                .checks = {},
                .refused = {},
                .curves = {},
                .scores = {}};
  std::optional<ModelConfig> measured;
  Architecture measured_role{};
  for (const auto role : {Architecture::decoder, Architecture::encoder}) {
    auto config = config_with(part, selection, role);
    const auto refusal = why_not(config, role);
    if (refusal && part == ProbedPart::attention) {  // some mixers need positions
      config.position = Position::rotary;
      config.rotary.fraction = 0.5;
    }
    if (refusal && (part != ProbedPart::attention || why_not(config, role))) {
      card.refused.emplace_back(name_of(role), *refusal);
      continue;
    }
    if (!measured) measured = config, measured_role = role;
    for (auto& check : Prober(config, role, options.seed).checks()) card.checks.push_back(std::move(check));
  }
  if (!measured) throw ConfigError(card.refused.front().second);
  if (!options.scaling) return card;
  measured->d_model = 128;
  measured->d_ff = 512;
  const auto wanted = curves_of(part);
  for (auto& curve : measure_scaling(*measured, purpose_of(measured_role), torch::kCPU, *options.scaling)) {
    if (wanted.contains(curve.part)) card.curves.push_back(std::move(curve));
  }
  return card;
}

nlohmann::ordered_json to_json(const PartCard& card) {
  using Json = nlohmann::ordered_json;
  Json json{{"part", name_of(card.part)}, {"name", card.name},
            {"type", card.type},          {"doc", card.doc},
            {"checks", Json::array()},    {"refused", Json::array()},
            {"scaling", Json::array()},   {"scores", Json::array()}};
  for (const auto& check : card.checks) {
    const Json holds = check.holds == Holds::none ? Json(nullptr) : Json(check.holds == Holds::yes);
    json["checks"].push_back({{"name", check.name},
                              {"role", check.role},
                              {"holds", holds},
                              {"value", check.value},
                              {"says", check.says}});
  }
  for (const auto& [role, reason] : card.refused)
    json["refused"].push_back({{"role", role}, {"reason", reason}});
  for (const auto& curve : card.curves) json["scaling"].push_back(to_json(curve));
  for (const auto& score : card.scores) {
    json["scores"].push_back({{"task", score.task},
                              {"metric", score.metric},
                              {"value", score.value},
                              {"percent", score.percent},
                              {"steps", score.steps}});
  }
  return json;
}

}  // namespace zoo
