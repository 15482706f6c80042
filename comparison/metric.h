#pragma once
// The one number by which the rows of a comparison are ranked.

#include <string>

#include "comparison/statistics.h"
#include "training/tasks/experiment.h"

namespace zoo {

struct Metric {
  std::string key;    // of Task::evaluate()
  std::string label;  // for people
  Better better = Better::lower;
  bool percent = false;  // shown as a percentage
};

/// Bits per byte for texts, which do not depend on the tokenizer; accuracy for classes; the loss for masks.
Metric metric_of(TaskKind task);

}  // namespace zoo
