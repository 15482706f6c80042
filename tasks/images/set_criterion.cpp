#include "tasks/images/set_criterion.h"

#include <vector>

#include <torch/types.h>

#include "tasks/images/assignment.h"

namespace zoo {
namespace {

/// The costs of all pairs, (B, Q, M) double on the CPU. Where the model's outputs are no numbers they are 0:
/// the loss then shows the problem.
torch::Tensor costs_of(const torch::Tensor& logits, const torch::Tensor& boxes, const Batch& part,
                       const SetWeights& cost) {
  const auto& targets = part.field(fields::kBoxes);  // (B, M, 4)
  const int64_t B = logits.size(0), Q = logits.size(1), M = targets.size(1);
  const auto classes = part.field(fields::kBoxClasses).clamp_min(0).unsqueeze(1).expand({B, Q, M});
  const auto probability = logits.softmax(-1).gather(2, classes);
  const auto distance = torch::cdist(boxes, targets, 1);
  const auto overlap = generalized_iou(corners_of(boxes).unsqueeze(2), corners_of(targets).unsqueeze(1));
  const auto sum = cost.boxes * distance - cost.classes * probability - cost.overlap * overlap;
  return sum.to(torch::kCPU, torch::kDouble).nan_to_num(0, 0, 0);
}

/// The number of objects in each row: (B) int64.
torch::Tensor counts_of(const Batch& part) { return part.field(fields::kBoxClasses).ge(0).sum(1); }

/// The cheapest pairs of one picture: matched[query] = object. costs: (Q, M), the first n objects count.
void match_row(const torch::Tensor& costs, int64_t n, int64_t* matched) {
  const auto real = costs.narrow(1, 0, n).contiguous();
  const std::span<const double> numbers(real.const_data_ptr<double>(), static_cast<size_t>(real.numel()));
  for (const auto& [query, object] : cheapest_assignment(numbers, real.size(0), n)) matched[query] = object;
}

}  // namespace

void describe(ConfigVisitor& v, SetWeights& c) {
  v.field("classes", c.classes, "Of the class.", Limits::at_least(0));
  v.field("boxes", c.boxes, "Of the L1 distance of the boxes.", Limits::at_least(0));
  v.field("overlap", c.overlap, "Of 1 - generalised IoU of the boxes.", Limits::at_least(0));
}

void describe(ConfigVisitor& v, SetCriterionConfig& c) {
  v.field("cost", c.cost, "Weights of the cost by which objects and queries are matched.");
  v.field("loss", c.loss, "Weights of the parts of the loss.");
  v.field("no_object_weight", c.no_object_weight, "Weight of queries without an object in the cross-entropy.",
          {.min = 0, .max = 1, .min_excluded = true});
  v.field("auxiliary", c.auxiliary, "Whether every decoder layer has the loss, or only the last one.");
}

torch::Tensor corners_of(const torch::Tensor& boxes) {
  const auto centre = boxes.narrow(-1, 0, 2), half = boxes.narrow(-1, 2, 2) / 2;
  return torch::cat({centre - half, centre + half}, -1);
}

torch::Tensor generalized_iou(const torch::Tensor& a, const torch::Tensor& b) {
  const auto upper_left = [](const torch::Tensor& box) { return box.narrow(-1, 0, 2); };
  const auto lower_right = [](const torch::Tensor& box) { return box.narrow(-1, 2, 2); };
  const auto area = [](const torch::Tensor& sides) { return sides.select(-1, 0) * sides.select(-1, 1); };
  const auto shared =
      area((torch::minimum(lower_right(a), lower_right(b)) - torch::maximum(upper_left(a), upper_left(b)))
               .clamp_min(0));
  const auto both = area(lower_right(a) - upper_left(a)) + area(lower_right(b) - upper_left(b)) - shared;
  const auto hull =
      area(torch::maximum(lower_right(a), lower_right(b)) - torch::minimum(upper_left(a), upper_left(b)));
  return shared / both - (hull - both) / hull;
}

torch::Tensor match_objects(const torch::Tensor& logits, const torch::Tensor& boxes, const Batch& part,
                            const SetWeights& cost) {
  const torch::NoGradGuard no_grad;
  const auto costs = costs_of(logits, boxes, part, cost);
  const auto counts = counts_of(part).to(torch::kCPU);
  auto matched = torch::full({logits.size(0), logits.size(1)}, -1, torch::kInt64);
  for (int64_t b = 0; b < matched.size(0); ++b)
    match_row(costs[b], counts[b].item<int64_t>(), matched[b].mutable_data_ptr<int64_t>());
  return matched.to(logits.device());
}

torch::Tensor SetLosses::total(const SetWeights& weights) const {
  return weights.classes * classes + weights.boxes * boxes + weights.overlap * overlap;
}

SetLosses set_losses(const torch::Tensor& logits, const torch::Tensor& boxes, const Batch& part,
                     const SetCriterionConfig& config) {
  constexpr int64_t ignore_nothing = -100;
  const int64_t Q = logits.size(1), no_object = logits.size(2) - 1;
  const auto matched = match_objects(logits, boxes, part, config.cost);  // (B, Q)
  const auto has_object = matched.ge(0);
  const auto object = matched.clamp_min(0);

  const auto classes = part.field(fields::kBoxClasses).gather(1, object).masked_fill(~has_object, no_object);
  auto class_weights = torch::ones({no_object + 1}, logits.options());
  class_weights[no_object] = config.no_object_weight;
  const auto class_loss = at::cross_entropy_loss(logits.flatten(0, 1), classes.flatten(), class_weights,
                                                 at::Reduction::Sum, ignore_nothing);

  const auto row = has_object.nonzero().select(1, 0);  // (n): the picture of each pair
  const auto found = boxes.index({has_object});        // (n, 4)
  const auto wanted = part.field(fields::kBoxes).index({row, object.index({has_object})});
  const auto distance = (found - wanted).abs().sum();
  const auto overlap = (1 - generalized_iou(corners_of(found), corners_of(wanted))).sum();

  const auto counts = part.field(fields::kBatchCounts).select(0, 0);  // (B of the whole batch)
  const auto pairs = counts.clamp_max(Q).sum(), queries = counts.numel() * Q - pairs;
  const auto n_objects = counts.sum().clamp_min(1);
  return {.classes = class_loss / (pairs + config.no_object_weight * queries),
          .boxes = distance / n_objects,
          .overlap = overlap / n_objects};
}

torch::Tensor SetCriterion::loss(Model& model, const Batch& part) const {
  auto* const detecting = model.detecting();
  TORCH_CHECK(detecting, "a set criterion needs a model that detects");
  return loss(detecting->detect(part), part);
}

torch::Tensor SetCriterion::loss(const Detections& found, const Batch& part) const {
  const auto logits = found.logits.to(torch::kFloat), boxes = found.boxes.to(torch::kFloat);
  const int64_t L = logits.size(0), n_pictures = part.field(fields::kBatchCounts).size(1);
  torch::Tensor sum = torch::zeros({}, logits.options());
  for (int64_t layer = config_.auxiliary ? 0 : L - 1; layer < L; ++layer)
    sum = sum + set_losses(logits[layer], boxes[layer], part, config_).total(config_.loss);
  return sum * n_pictures;
}

}  // namespace zoo
