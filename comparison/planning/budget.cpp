#include "comparison/planning/budget.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/stopwatch.h"
#include "io/progress.h"
#include "models/families/model_cost.h"

namespace zoo {
namespace {

/// Counts what the steps of a training consume, without training.
class StepWalker {
 public:
  StepWalker(const Experiment& experiment, Task& task)
      : experiment_(experiment), source_(task.batches(Split::train)), purpose_(task.purpose()) {}

  const Consumption& consumed() const { return consumed_; }

  /// Shows progress once planning has taken longer than a second.
  void show(double fraction) {
    constexpr double whole = 1000;
    if (!progress_ && watch_.seconds() < 1) return;
    if (!progress_)
      progress_ =
          std::make_unique<Progress>("planning", ProgressCount{.total = std::llround(whole), .unit = ""});
    progress_->update(std::llround(whole * std::min(1.0, fraction)),
                      fmt::format("{} steps", consumed_.steps));
  }

  void advance() {
    for (int64_t i = 0; i < experiment_.training.gradient_accumulation; ++i) {
      if (batch_ >= source_.n_batches(epoch_)) {
        ++epoch_;
        batch_ = 0;
      }
      const auto batch = source_.batch(epoch_, batch_++);
      consumed_.tokens += batch.tokens;
      consumed_.flops += 3 * forward_flops(experiment_.model, purpose_, pass_shape(batch));
    }
    ++consumed_.steps;
  }

 private:
  const Experiment& experiment_;
  BatchSource& source_;
  ModelPurpose purpose_;
  int64_t epoch_ = 0, batch_ = 0;
  Consumption consumed_;
  Stopwatch watch_;
  std::unique_ptr<Progress> progress_;
};

}  // namespace

Consumption consumption(const Experiment& experiment, Task& task, int64_t steps) {
  StepWalker walker(experiment, task);
  for (int64_t i = 0; i < steps; ++i) {
    walker.advance();
    walker.show(static_cast<double>(i) / static_cast<double>(steps));
  }
  return walker.consumed();
}

Consumption steps_within(const Experiment& experiment, Task& task, const Budget& budget) {
  if (budget.kind == BudgetKind::seconds) throw UsageError("a budget of seconds gives no number of steps");
  if (budget.kind == BudgetKind::steps)
    return consumption(experiment, task, std::max<int64_t>(1, std::llround(budget.amount)));
  const auto used = [&](const Consumption& c) {
    return budget.kind == BudgetKind::tokens ? static_cast<double>(c.tokens) : c.flops;
  };
  StepWalker walker(experiment, task);
  walker.advance();
  Consumption before = walker.consumed();
  while (used(walker.consumed()) < budget.amount) {
    before = walker.consumed();
    walker.advance();
    walker.show(used(walker.consumed()) / budget.amount);
  }
  const auto& after = walker.consumed();
  return budget.amount - used(before) < used(after) - budget.amount ? before : after;
}

}  // namespace zoo
