#pragma once
// Observers of a training: the types of `training.observers`. They name numbers for metrics.jsonl.

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "io/config/registry.h"
#include "io/metrics_log.h"
#include "models/model.h"

namespace zoo {

/// Looks at a training while it runs. What it says depends on the model and the step alone, so a run that was
/// stopped goes on as if it had not been. Numbers that are not finite are left out.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  /// After each step that is logged (training.log_every), while the gradients of its loss, clipped, are still
  /// there: the numbers go into the step's row. `step` counts from 1.
  virtual Metrics after_step(const Model& /*model*/, int64_t /*step*/) { return {}; }
  /// After each evaluation on the validation data, which had these metrics: the numbers go into its row.
  virtual Metrics after_evaluation(const Model& /*model*/, const Metrics& /*metrics*/) { return {}; }
  /// After a checkpoint of this step was written.
  virtual void after_checkpoint(const Model& /*model*/, int64_t /*step*/,
                                const std::filesystem::path& /*run_dir*/) {}
};

/// A kind of observer. Programs add theirs with training_observer_types().add().
struct TrainingObserverType : TypeInfo {
  std::function<std::unique_ptr<TrainingObserver>(const Selection& selection)> make;
};

inline std::string_view what_lacks(const TrainingObserverType& type) {
  return type.make ? std::string_view() : "make, which builds the observer";
}

/// Holds
///   norms  of the weights and of their gradients by part of the model: weight_norm_PART, gradient_norm_PART
/// and added ones.
Registry<TrainingObserverType>& training_observer_types();

}  // namespace zoo
