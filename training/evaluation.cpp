#include "training/evaluation.h"

#include <cmath>
#include <numeric>

#include <torch/types.h>

namespace zoo {

Score score(Model& model, BatchSource& source, std::optional<int64_t> max_batches,
            const LookAtPredictions& look) {
  constexpr int64_t at_once = 1024;
  constexpr int64_t ignore_nothing = -100;
  const EvaluationMode mode(model);
  const auto device = model.device();
  const int64_t n_batches = std::min(source.n_batches(0), max_batches.value_or(source.n_batches(0)));
  // Summed on the device in double: one transfer, and no rounding that depends on the size of the data.
  auto nats = torch::zeros({}, torch::dtype(torch::kDouble).device(device));
  int64_t n_targets = 0;
  for (int64_t i = 0; i < n_batches; ++i) {
    const auto batch = source.batch(0, i).to(device);
    const auto features = model.features(batch);
    for (int64_t begin = 0; begin < batch.n_targets(); begin += at_once) {
      const int64_t n = std::min(at_once, batch.n_targets() - begin);
      const auto logits = model.logits(features.narrow(0, begin, n)).to(torch::kFloat);
      const auto targets = batch.targets.narrow(0, begin, n);
      nats += at::cross_entropy_loss(logits, targets, {}, at::Reduction::Sum, ignore_nothing);
      if (look) look(logits, targets);
    }
    n_targets += batch.n_targets();
  }
  return {.nats = nats.item<double>(), .targets = n_targets};
}

Metrics loss_metrics(const Score& score) {
  return {{"loss", score.loss()},
          {"perplexity", std::exp(score.loss())},
          {"tokens", static_cast<double>(score.targets)}};
}

ConfusionCounts::ConfusionCounts(int64_t n_classes)
    : actual_(static_cast<size_t>(n_classes)), predicted_(actual_.size()), right_(actual_.size()) {}

void ConfusionCounts::add(const torch::Tensor& predicted, const torch::Tensor& actual) {
  const auto p = predicted.to(torch::kCPU).contiguous(), a = actual.to(torch::kCPU).contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const auto answer = static_cast<size_t>(p.const_data_ptr<int64_t>()[i]);
    const auto truth = static_cast<size_t>(a.const_data_ptr<int64_t>()[i]);
    ++predicted_[answer];
    ++actual_[truth];
    if (answer == truth) ++right_[truth];
  }
}

double ConfusionCounts::accuracy() const {
  const auto sum = [](const auto& counts) {
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  };
  return static_cast<double>(sum(right_)) / static_cast<double>(std::max<int64_t>(sum(actual_), 1));
}

double ConfusionCounts::macro_f1() const {
  double sum = 0;
  int64_t classes = 0;
  for (size_t c = 0; c < actual_.size(); ++c) {
    const int64_t mentions = actual_[c] + predicted_[c];
    if (mentions == 0) continue;
    sum += 2 * static_cast<double>(right_[c]) / static_cast<double>(mentions);
    ++classes;
  }
  return sum / static_cast<double>(std::max<int64_t>(classes, 1));
}

}  // namespace zoo
