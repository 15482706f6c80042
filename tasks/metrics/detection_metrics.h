#pragma once
// Average precision of detected objects, as pycocotools' COCOeval computes it for boxes, to the last tie.

#include <cstdint>
#include <span>
#include <vector>

#include "data/images/box.h"

namespace zoo {

/// The precisions of one category, as means over the thresholds and recalls; -1 where there is no object to
/// find.
struct CategoryPrecision {
  int64_t category = 0;
  double precision = -1, precision_50 = -1, precision_75 = -1;
  double precision_small = -1, precision_medium = -1, precision_large = -1;
};

/// The twelve numbers that COCOeval.summarize() prints; -1 where there is no object to find. Precisions are
/// means over the IoU thresholds 0.5, 0.55, … 0.95 where none is named, over 101 recalls, and over the
/// categories. Detections are the 100 of the best score in each image and category where no number is named.
struct DetectionMetrics {
  double precision = -1, precision_50 = -1, precision_75 = -1;
  double precision_small = -1, precision_medium = -1, precision_large = -1;  // areas to 32², 96², above
  double recall_1 = -1, recall_10 = -1, recall_100 = -1;                     // detections of an image
  double recall_small = -1, recall_medium = -1, recall_large = -1;
  std::vector<CategoryPrecision> categories = {};  // those with something to find, by their numbers
};
DetectionMetrics detection_metrics(std::span<const AnnotatedObject> marked,
                                   std::span<const DetectedObject> detected);

/// Intersection over union; 0 if both are empty.
double intersection_over_union(const Box& a, const Box& b);

}  // namespace zoo
