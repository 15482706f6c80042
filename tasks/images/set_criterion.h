#pragma once
// The loss of a set of predicted objects (Carion et al. 2020, DETR, section 3.1): each object of a picture is
// matched with one object query, and queries without an object learn to say "no object". As
// ForObjectDetectionLoss in transformers.

#include <torch/types.h>

#include "io/config/config_file.h"
#include "tasks/objective.h"

namespace zoo {

/// Weights of the three parts: cross-entropy, L1 distance of boxes, and 1 - generalised IoU of boxes.
struct SetWeights {
  double classes = 1, boxes = 5, overlap = 2;
};
void describe(ConfigVisitor& v, SetWeights& c);

struct SetCriterionConfig {
  SetWeights cost = {};  // of a pair of object and query, for the matching; classes: minus the probability
  SetWeights loss = {};
  double no_object_weight = 0.1;  // of queries without an object in the cross-entropy
  bool auxiliary = true;          // whether every decoder layer has the loss, or only the last one
};
void describe(ConfigVisitor& v, SetCriterionConfig& c);

/// The parts of the loss of one decoder layer: float scalars, without their weights.
struct SetLosses {
  torch::Tensor classes;  // mean over the queries of the whole batch, weighted by no_object_weight
  torch::Tensor boxes;    // sum over the matched pairs, divided by the objects of the whole batch
  torch::Tensor overlap;  // the same

  torch::Tensor total(const SetWeights& weights) const;
};

/// The objects that queries are matched with: (B, Q) int64, numbers of the columns of the field "boxes"; -1 =
/// no object. Exact for the costs of the configuration (tasks/images/assignment.h); if there are more objects
/// than queries, the cheapest pairs are matched. logits (B, Q, C+1), boxes (B, Q, 4); `part` has the fields
/// of data/images/detection_batches.h.
torch::Tensor match_objects(const torch::Tensor& logits, const torch::Tensor& boxes, const Batch& part,
                            const SetWeights& cost);

/// The losses of one decoder layer for some rows of a batch. Those of all rows sum to the batch's.
SetLosses set_losses(const torch::Tensor& logits, const torch::Tensor& boxes, const Batch& part,
                     const SetCriterionConfig& config);

/// The loss of a model that detects. Every target is a picture. The loss of a batch, divided by its pictures,
/// is the loss as DETR defines it.
class SetCriterion final : public Objective {
 public:
  explicit SetCriterion(const SetCriterionConfig& config) : config_(config) {}

  int64_t n_targets(const Batch& batch) const override { return batch.n_rows(); }
  torch::Tensor loss(Model& model, const Batch& part) const override;
  /// The same for what a model has said.
  torch::Tensor loss(const Detections& found, const Batch& part) const;

 private:
  SetCriterionConfig config_;
};

/// (…, 4) centre x, centre y, width, height → left, top, right, bottom
torch::Tensor corners_of(const torch::Tensor& boxes);

/// Generalised intersection over union (Rezatofighi et al. 2019) of boxes given by their corners, (…, 4) and
/// (…, 4) that broadcast: (…), from -1 to 1.
torch::Tensor generalized_iou(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace zoo
