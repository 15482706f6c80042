#pragma once
// Scoring a model on batches.

#include <functional>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "data/batch_source.h"
#include "io/metrics_log.h"
#include "models/model.h"
#include "training/config/training_config.h"
#include "training/parallel/process_group.h"

namespace zoo {

/// While it lives, the model has no dropout and nothing is recorded for gradients.
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model), was_training_(model.is_training()) { model.eval(); }
  ~EvaluationMode() { model_.train(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::NoGradGuard no_grad_;
  Model& model_;
  bool was_training_;
};

struct EvaluationOptions {
  std::optional<int64_t> max_batches = {};  // default all
  /// Share the work; each process gets the result of all. Null = this one alone.
  const ProcessGroup* processes = nullptr;
  /// Must be among the metrics. What is costly, as bleu is, is there only if it is wanted.
  BestBy wanted = BestBy::loss;

  int64_t rank() const { return processes ? processes->rank() : 0; }
  int64_t n_processes() const { return processes ? processes->size() : 1; }
};

struct Score {
  double nats = 0;  // summed over the targets
  int64_t targets = 0;

  double loss() const { return nats / static_cast<double>(targets); }
};

/// Looks at logits (n, V) and targets (n) of some of the predictions, on the model's device.
using LookAtPredictions = std::function<void(const torch::Tensor& logits, const torch::Tensor& targets)>;

/// The cross-entropy of the first batches of epoch 0. `look` sees every prediction of this process once, in
/// order, a thousand at a time: all logits at once may not fit into memory.
Score score(Model& model, BatchSource& source, const EvaluationOptions& options = {},
            const LookAtPredictions& look = {});

/// counts ← their sum over the processes that share an evaluation, if there are several. Collective.
void sum_over_processes(const EvaluationOptions& options, torch::Tensor counts);

/// loss, perplexity, tokens.
Metrics loss_metrics(const Score& score);

/// Right and wrong answers by class.
class ConfusionCounts {
 public:
  explicit ConfusionCounts(int64_t n_classes);
  /// predicted, actual: (n) int64 on the same device.
  void add(const torch::Tensor& predicted, const torch::Tensor& actual);
  /// Adds what the other processes have counted. Collective.
  void add_up(const EvaluationOptions& options);
  /// Part of the answers that are right.
  double accuracy() const;
  /// F1 averaged over the classes that are either predicted or right somewhere, each counting the same.
  double macro_f1() const;

 private:
  torch::Tensor counts_;  // (3, n_classes) int64: actual, predicted, both
};

}  // namespace zoo
