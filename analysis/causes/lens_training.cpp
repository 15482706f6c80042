#include "analysis/causes/lens_training.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "analysis/causes/frozen_weights.h"
#include "analysis/causes/lens.h"
#include "base/error.h"
#include "base/random.h"
#include "models/inference_scope.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedules.h"
#include "tasks/objective.h"

namespace zoo {
namespace {

constexpr int64_t kBatchesOfOneHeldOut = 5;

/// Rows that are pooled over their lengths, one by one without padding: the rows of all depths, which the
/// final norm and the head read together, have no lengths.
std::vector<Batch> readable_parts(const Batch& batch) {
  const bool is_padded = batch.input.lengths.defined() || batch.decoder.lengths.defined();
  if (batch.positions.defined() || !is_padded) return {batch};
  auto rows = split_rows(batch, batch.n_rows());
  for (auto& row : rows) {
    const auto cut = [](torch::Tensor& x, int64_t length) {
      if (x.defined()) x = x.narrow(1, 0, length);
    };
    for (auto* const tokens : {&row.input, &row.decoder}) {
      if (!tokens->lengths.defined()) continue;
      const int64_t length = tokens->lengths.item<int64_t>();
      cut(tokens->ids, length);
      if (tokens == &row.input) cut(row.segments, length);
      tokens->lengths = torch::Tensor();
    }
  }
  return rows;
}

/// Calls `look` with ranges of places, so that at most so many logits are in memory together.
template <class Look>
void for_ranges_of_places(const Model& model, int64_t n_places, int64_t most_logits, const Look& look) {
  const int64_t most = std::max<int64_t>(1, most_logits / model.n_outputs());
  for (int64_t begin = 0; begin < n_places; begin += most) look(begin, std::min(most, n_places - begin));
}

/// Σ over rows of KL(p ‖ q), of logarithms of probabilities (M, V).
torch::Tensor divergence_sum(const torch::Tensor& p, const torch::Tensor& q) {
  return (p.exp() * (p - q)).sum();
}

torch::Tensor log_shares(Model& model, const torch::Tensor& features, torch::ScalarType type) {
  return model.logits(features).log_softmax(-1, type);
}

/// Mean divergences of the depths over the places of some batches.
struct Divergences {
  std::vector<double> means;
  int64_t places = 0;
};

Divergences divergences_of(Model& model, const std::vector<Batch>& batches, const TrainedLens& lens,
                           int64_t most_logits) {
  const InferenceScope inference(model);
  Divergences found{.means = std::vector<double>(lens.size()), .places = 0};
  const auto add = [&](const Batch& part) {
    const auto features = lens_features(model, model.on_device(part), lens);
    const int64_t n = features.back().size(0);
    found.places += n;
    for_ranges_of_places(model, n, most_logits, [&](int64_t begin, int64_t count) {
      const auto shares = [&](const torch::Tensor& of) {
        return log_shares(model, of.narrow(0, begin, count), torch::kDouble);
      };
      const auto own = shares(features.back());
      if (own.isnan().any().item<bool>()) fail_not_a_number();
      for (size_t depth = 0; depth < lens.size(); ++depth)
        found.means[depth] += divergence_sum(own, shares(features[depth])).item<double>();
    });
  };
  for (const auto& batch : batches)
    for (const auto& part : readable_parts(batch)) add(part);
  for (auto& mean : found.means) mean /= static_cast<double>(found.places);
  return found;
}

/// Adds the gradients of Σ over depths and places of KL(final ‖ depth) / n_places to those of the maps. The
/// graph is cut at the features, so that distributions of few places are in memory.
void add_gradients_of(Model& model, const Batch& batch, const TrainedLens& lens, int64_t n_places,
                      int64_t most_logits) {
  const InferenceScope inference(model);
  const torch::AutoGradMode with_gradients(true);
  auto features = lens_features(model, batch, lens);
  const auto last = features.back().detach();
  features.pop_back();
  std::vector<torch::Tensor> gradients;
  for (const auto& of_depth : features) gradients.push_back(torch::empty_like(of_depth));
  for_ranges_of_places(model, last.size(0), most_logits, [&](int64_t begin, int64_t count) {
    const auto own = [&] {
      const torch::NoGradGuard no_grad;
      return log_shares(model, last.narrow(0, begin, count), torch::kFloat);
    }();
    for (size_t depth = 0; depth < features.size(); ++depth) {
      const auto leaf = features[depth].detach().narrow(0, begin, count).requires_grad_();
      const auto loss = divergence_sum(own, log_shares(model, leaf, torch::kFloat));
      const auto gradient = gradients_of(loss, {}, {leaf}).front();
      gradients[depth].narrow(0, begin, count).copy_(gradient / static_cast<double>(n_places));
    }
  });
  torch::autograd::backward(features, gradients);
}

int64_t n_places_of(const Batch& batch) {
  if (batch.positions.defined()) return batch.positions.numel();
  return batch.targets.defined() ? batch.n_targets() : batch.n_rows();
}

/// Which batch each step reads.
std::vector<size_t> order_of_batches(size_t n_batches, const LensTrainingOptions& options) {
  std::vector<size_t> order, epoch(n_batches);
  for (uint64_t i = 0; std::ssize(order) < options.steps; ++i) {
    std::iota(epoch.begin(), epoch.end(), 0);
    CounterRandom({options.seed, i}).shuffle(epoch);
    order.insert(order.end(), epoch.begin(), epoch.end());
  }
  order.resize(static_cast<size_t>(options.steps));
  return order;
}

Optimizer adam_of(const TrainedLens& lens) {
  OptimizerConfig config;
  config.type = OptimizerKind::adam;
  config.betas = {0.9, 0.999};
  config.weight_decay = 0;
  std::vector<Parameter> parameters;
  for (size_t depth = 0; depth < lens.size(); ++depth) {
    parameters.push_back({.name = fmt::format("depths.{}.weight", depth),
                          .tensor = lens[depth].weight,
                          .role = ParameterRole::hidden_matrix});
    parameters.push_back({.name = fmt::format("depths.{}.bias", depth),
                          .tensor = lens[depth].bias,
                          .role = ParameterRole::vector});
  }
  return {config, parameters};
}

void set_requires_grad(const TrainedLens& lens, bool required) {
  for (const auto& map : lens)
    for (auto tensor : {map.weight, map.bias}) tensor.requires_grad_(required);
}

}  // namespace

int64_t batches_for_lens(int64_t steps) {
  return steps + std::max<int64_t>(1, steps / (kBatchesOfOneHeldOut - 1));
}

LensTraining train_lens(Model& model, const std::vector<Batch>& batches, const LensTrainingOptions& options,
                        const std::function<void(int64_t, int64_t)>& progress) {
  if (batches.size() < 2)
    throw UsageError(
        "--train: the data make one batch, and a part of it has to be held out: give more, at least two "
        "batches");
  std::vector<Batch> trained, held_out;
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto number = static_cast<int64_t>(i) + 1;
    const bool is_last_of_few = std::ssize(batches) < kBatchesOfOneHeldOut && number == std::ssize(batches);
    (number % kBatchesOfOneHeldOut == 0 || is_last_of_few ? held_out : trained).push_back(batches[i]);
  }
  LensTraining result{.options = options,
                      .trained_batches = std::ssize(trained),
                      .held_out_batches = std::ssize(held_out),
                      .lens = untrained_lens(model)};
  const auto& lens = result.lens;
  auto before = divergences_of(model, held_out, lens, options.most_logits);
  result.held_out_places = before.places;
  result.before = std::move(before.means);

  const FrozenWeights frozen(model);
  set_requires_grad(lens, true);
  auto adam = adam_of(lens);
  ScheduleConfig schedule;
  schedule.type = ScheduleKind::linear;
  const auto order = order_of_batches(trained.size(), options);
  for (int64_t step = 0; step < options.steps; ++step) {
    const auto& batch = trained[order[static_cast<size_t>(step)]];
    adam.zero_grad();
    for (const auto& part : readable_parts(batch))
      add_gradients_of(model, model.on_device(part), lens, n_places_of(batch), options.most_logits);
    adam.step(learning_rate({.config = schedule, .peak = options.lr, .step = step, .steps = options.steps}));
    progress(step + 1, options.steps);
  }
  adam.zero_grad();
  set_requires_grad(lens, false);
  result.after = divergences_of(model, held_out, lens, options.most_logits).means;
  if (!std::ranges::all_of(result.after, [](double value) { return std::isfinite(value); }))
    throw TrainingError("the maps of the lens are not numbers any more: choose a smaller --lr");
  return result;
}

}  // namespace zoo
