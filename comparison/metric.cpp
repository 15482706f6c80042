#include "comparison/metric.h"

namespace zoo {

Metric metric_of(TaskKind task) {
  switch (task) {
    case TaskKind::language_modeling:
      return {.key = "bits_per_byte", .label = "bits per byte"};
    case TaskKind::text_to_text:
      return {.key = "bits_per_byte", .label = "bits per byte of the target"};
    case TaskKind::text_classification:
      return {.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
    case TaskKind::masked_language_modeling:
      break;
  }
  return {.key = "loss", .label = "loss in nats per hidden token"};
}

}  // namespace zoo
