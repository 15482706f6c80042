#include "tasks/evaluation.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "models/inference_scope.h"
#include "tasks/examples.h"
#include "tasks/label_loss.h"

namespace zoo {

void for_each_own_batch(BatchSource& source, const EvaluationOptions& options,
                        const std::function<void(const Batch&)>& work) {
  const int64_t all = source.n_batches(0), n_batches = std::min(all, options.max_batches.value_or(all));
  for (int64_t i = options.rank(); i < n_batches; i += options.n_processes()) {
    const auto batch = source.batch(0, i);
    if (i + options.n_processes() < n_batches) source.expect(0, i + options.n_processes());
    work(batch);
    if (options.on_progress) options.on_progress(std::min(i + options.n_processes(), n_batches), n_batches);
  }
}

Score score(Model& model, BatchSource& source, const EvaluationOptions& options,
            const LookAtPredictions& look, Problem problem) {
  constexpr int64_t at_once = 1024;
  const InferenceScope scope(model);
  const auto device = model.device();
  // Summed on the device, for one transfer, and in double, so that rounding does not grow with the data.
  auto nats = torch::zeros({}, torch::dtype(torch::kDouble).device(device));
  int64_t n_targets = 0;
  for_each_own_batch(source, options, [&](const Batch& on_cpu) {
    const auto batch = model.on_device(on_cpu);
    const auto features = model.features(batch);
    std::vector<torch::Tensor> losses;  // of the single targets, if they are wanted
    for (int64_t begin = 0; begin < batch.n_targets(); begin += at_once) {
      const int64_t n = std::min(at_once, batch.n_targets() - begin);
      const auto logits = model.logits(features.narrow(0, begin, n)).to(torch::kFloat);
      const auto targets = batch.targets.narrow(0, begin, n);
      nats += label_loss(problem, logits, targets);
      if (look) look(logits, targets);
      if (options.losses) losses.push_back(label_losses(problem, logits, targets));
    }
    if (!losses.empty()) options.losses->add(on_cpu, torch::cat(losses));
    n_targets += batch.n_targets();
  });
  const auto sums = torch::tensor({nats.item<double>(), static_cast<double>(n_targets)}, torch::kDouble);
  sum_over_processes(options, sums);
  return {.nats = sums[0].item<double>(), .targets = static_cast<int64_t>(sums[1].item<double>())};
}

Score mean_of_objective(Model& model, const Objective& objective, BatchSource& source,
                        const EvaluationOptions& options) {
  const InferenceScope scope(model);
  auto total = torch::zeros({}, torch::dtype(torch::kDouble).device(model.device()));
  int64_t n_targets = 0;
  for_each_own_batch(source, options, [&](const Batch& batch) {
    total += objective.loss(model, model.on_device(batch));
    n_targets += objective.n_targets(batch);
  });
  const auto sums = torch::tensor({total.item<double>(), static_cast<double>(n_targets)}, torch::kDouble);
  sum_over_processes(options, sums);
  if (sums[1].item<double>() == 0) throw DataError("the data to be scored have no targets");
  return {.nats = sums[0].item<double>(), .targets = static_cast<int64_t>(sums[1].item<double>())};
}

void sum_over_processes(const EvaluationOptions& options, torch::Tensor counts) {
  if (options.processes) options.processes->all_reduce(std::move(counts)).wait();
}

Metrics loss_metrics(const Score& score) {
  if (score.targets == 0)
    throw DataError("the data to be scored have no targets: none of their tokens can be masked");
  return {{"loss", score.loss()},
          {"perplexity", std::exp(score.loss())},
          {"tokens", static_cast<double>(score.targets)}};
}

nlohmann::ordered_json confusion_json(const torch::Tensor& confusion,
                                      const std::vector<std::string>& labels) {
  if (!confusion.defined()) return nullptr;
  auto rows = nlohmann::ordered_json::array();
  for (int64_t i = 0; i < confusion.size(0); ++i) {
    const auto row = confusion[i].contiguous();
    rows.push_back(
        std::vector<int64_t>(row.const_data_ptr<int64_t>(), row.const_data_ptr<int64_t>() + row.numel()));
  }
  return {{"labels", labels}, {"counts", std::move(rows)}};
}

ConfusionCounts::ConfusionCounts(int64_t n_classes) : counts_(torch::zeros({3, n_classes}, torch::kLong)) {
  if (n_classes <= kMostClasses) matrix_ = torch::zeros({n_classes, n_classes}, torch::kLong);
}

void ConfusionCounts::add(const torch::Tensor& predicted, const torch::Tensor& actual) {
  const auto p = predicted.to(torch::kCPU), a = actual.to(torch::kCPU);
  const int64_t n_classes = counts_.size(1);
  counts_[0] += at::bincount(a, {}, n_classes);
  counts_[1] += at::bincount(p, {}, n_classes);
  counts_[2] += at::bincount(a.masked_select(p == a), {}, n_classes);
  if (matrix_.defined())
    matrix_ += at::bincount(a * n_classes + p, {}, n_classes * n_classes).view_as(matrix_);
}

void ConfusionCounts::finish(const EvaluationOptions& options) {
  sum_over_processes(options, counts_);
  if (!options.confusion || !matrix_.defined()) return;
  sum_over_processes(options, matrix_);
  *options.confusion = matrix_;
}

double ConfusionCounts::accuracy() const {
  const auto sums = counts_.sum(1);
  return sums[2].item<double>() / std::max(sums[0].item<double>(), 1.0);
}

double ConfusionCounts::macro_f1() const {
  const auto mentions = counts_[0] + counts_[1];
  const auto f1 = (2 * counts_[2]).to(torch::kDouble) / mentions;  // NaN for a class that never occurs
  return mentions.any().item<bool>() ? f1.nanmean().item<double>() : 0.0;
}

}  // namespace zoo
