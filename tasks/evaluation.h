#pragma once
// Scoring a model on batches.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <torch/types.h>

#include "data/batch_source.h"
#include "data/labels.h"
#include "io/metrics_log.h"
#include "models/model.h"
#include "parallel/process_group.h"
#include "tasks/objective.h"
#include "tasks/training_config.h"

namespace zoo {

struct ExampleScore;
struct TargetLosses;

/// The metrics of one class, or of one speaker. -1 = there is nothing to measure.
struct ClassMetrics {
  std::string label;
  Metrics metrics;
};

struct EvaluationOptions {
  std::optional<int64_t> max_batches = {};  // default all
  /// These processes share the work, and each gets the result of all. Null = this process alone.
  const ProcessGroup* processes = nullptr;
  /// A metric that must be measured. Costly metrics, such as bleu, are measured only if they are named here.
  std::string wanted = "loss";
  /// A task that classifies puts here how often each class (columns) was predicted for each right class
  /// (rows): (C, C) int64. Null = not wanted. Stays undefined for other tasks, and for more than
  /// ConfusionCounts::kMostClasses.
  torch::Tensor* confusion = nullptr;
  /// A task that finds objects puts here the metrics of each class that there is to find, a task on
  /// recordings those of each speaker. Null = not wanted.
  std::vector<ClassMetrics>* classes = nullptr;
  /// The library's tasks put here what the model says of each example, in the order of the data
  /// (tasks/examples.h). Null = not wanted. Only without `processes`.
  std::vector<ExampleScore>* examples = nullptr;
  /// score() puts here the losses of single targets. Null = not wanted.
  TargetLosses* losses = nullptr;
  /// Called after each batch of this process with the numbers of batches that are done and that there are.
  std::function<void(int64_t done, int64_t all)> on_progress = nullptr;

  int64_t rank() const { return processes ? processes->rank() : 0; }
  int64_t n_processes() const { return processes ? processes->size() : 1; }
};

struct Score {
  double nats = 0;  // summed over the targets; of a regression, squared errors
  int64_t targets = 0;

  double loss() const { return nats / static_cast<double>(targets); }
};

/// Calls `work` with this process's share of the first batches of epoch 0. They are on the CPU.
void for_each_own_batch(BatchSource& source, const EvaluationOptions& options,
                        const std::function<void(const Batch&)>& work);

/// The loss of an objective over the first batches of epoch 0, without dropout. Its sum is in Score::nats.
Score mean_of_objective(Model& model, const Objective& objective, BatchSource& source,
                        const EvaluationOptions& options = {});

/// Receives logits (n, V) and targets (n) of some predictions, on the model's device.
using LookAtPredictions = std::function<void(const torch::Tensor& logits, const torch::Tensor& targets)>;

/// The loss of a problem (label_loss()), by default the cross-entropy, on the first batches of epoch 0.
/// `look` is called with every prediction of this process once, in order, about a thousand at a time, because
/// all logits at once may not fit into memory.
Score score(Model& model, BatchSource& source, const EvaluationOptions& options = {},
            const LookAtPredictions& look = {}, Problem problem = Problem::single_label);

/// counts ← their sum over the processes that share the evaluation. Collective.
void sum_over_processes(const EvaluationOptions& options, torch::Tensor counts);

/// The metrics loss, perplexity and tokens. Throws DataError if there are no targets.
Metrics loss_metrics(const Score& score);

/// EvaluationOptions::confusion as {"labels": [text, …], "counts": C × C numbers}; null where it is
/// undefined.
nlohmann::ordered_json confusion_json(const torch::Tensor& confusion, const std::vector<std::string>& labels);

/// Counts right and wrong answers by class.
class ConfusionCounts {
 public:
  /// With more classes there is no matrix.
  static constexpr int64_t kMostClasses = 1024;

  explicit ConfusionCounts(int64_t n_classes);
  /// predicted, actual: (n) int64 on the same device.
  void add(const torch::Tensor& predicted, const torch::Tensor& actual);
  /// Adds the counts of the other processes, and puts the matrix where the options want it. Collective.
  void finish(const EvaluationOptions& options);
  /// The fraction of the answers that are right.
  double accuracy() const;
  /// The mean of F1 over all classes that occur among the predictions or the right answers.
  double macro_f1() const;

 private:
  torch::Tensor counts_;  // (3, n_classes) int64: actual, predicted, both
  torch::Tensor matrix_;  // (n_classes, n_classes) int64, or undefined: see EvaluationOptions
};

}  // namespace zoo
